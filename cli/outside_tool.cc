// The tool with one store more, as somebody outside would build it.
#include "cli/tool.h"
#include "examples/outside_store/outside_entry.h"

int main(int argc, char** argv) {
  outside::add_to_registry();
  return simba::cli::run_tool(argc, argv);
}
