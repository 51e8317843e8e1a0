#include <string>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

namespace simba::cli {

int version(Format format) {
  const std::string number = SIMBA_VERSION;  // from the build
  const bool written =
      print(format == Format::kJson ? "{\"name\":\"simba\",\"version\":\"" + number + "\"}\n"
                                    : "simba " + number + '\n');
  return written ? exit_code::kOk : exit_code::kUnavailable;
}

}  // namespace simba::cli
