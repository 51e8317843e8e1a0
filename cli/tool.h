#pragma once

namespace simba::cli {

// The whole command: what main() calls, after it has registered stores of its own if it has any.
// Returns the exit code.
int run_tool(int argc, char** argv);

}  // namespace simba::cli
