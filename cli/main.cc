#include "cli/tool.h"

int main(int argc, char** argv) { return simba::cli::run_tool(argc, argv); }
