#include <nlohmann/json.hpp>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

namespace simba::cli {
namespace {

std::string json_of(const Preparation& done, Prepare how) {
  nlohmann::ordered_json object;
  object["made"] = how == Prepare::kNow && !done.statements.empty();
  object["summary"] = done.summary;
  object["statements"] = done.statements;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

// What is printed for somebody to run stands alone on standard output.
bool tell(const Preparation& done, Prepare how) {
  if (how == Prepare::kNow) {
    return print(printable(done.summary) + '\n' + styled(Style::kDim, done.statements));
  }
  if (done.statements.empty()) say(done.summary);
  return print(done.statements);
}

}  // namespace

int init(const InitCommand& command) {
  const Preparation done = prepare(command.store, command.how);
  const bool written =
      command.format == Format::kJson ? print(json_of(done, command.how)) : tell(done, command.how);
  return written ? exit_code::kOk : exit_code::kUnavailable;
}

}  // namespace simba::cli
