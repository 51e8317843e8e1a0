// `simba torture` in a program that does not hold it: the harness needs name servers and users of
// the system, which a static program cannot look up.
#include "cli/commands.h"
#include "cli/servers.h"
#include "simba/error.h"

namespace simba::cli {

int torture(const TortureCommand& command) {
  become_servers_program(command.given);
  throw Error(Errc::kMisconfigured, std::string("torture is in ") + kWithoutServers);
}

void contend_if_asked(int, char**) {}

}  // namespace simba::cli
