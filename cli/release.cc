#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/owner_view.h"
#include "cli/usage.h"

namespace simba::cli {
namespace {

std::string text_of(const OwnerView& before, const OwnerView& after, Eviction how) {
  const std::string mutex = "'" + printable(before.mutex) + "'";
  const std::string owner = printable(before.owner);
  if (after.owner == before.owner) return mutex + " is still held by " + owner + ": try again\n";
  const std::string taken =
      mutex + " was taken from " + owner + ", token " + std::to_string(before.token);
  if (!after.owner.empty()) {
    return taken + "; " + printable(after.owner) + " has it now, token " +
           std::to_string(after.token) + '\n';
  }
  if (how == Eviction::kFreeNow) {
    return taken + ", and is free; until it asks the store, " + printable(before.label) +
           " may believe that it owns it\n";
  }
  if (after.free) return taken + ", and is free\n";
  return taken + ": others may take it in at most " + print_bound(after.lease_left) + '\n';
}

}  // namespace

int release(const ReleaseCommand& command) {
  Client client = open_to_look(command.store);
  const OwnerView before(command.mutex, client.observe(command.mutex));
  if (before.owner.empty()) {
    say("'" + printable(command.mutex) + "' is " + before.state() + ": there is nobody to evict" +
        (before.token == 0 ? suggest_mutex(client, command.mutex) : ""));
    return exit_code::kFree;
  }
  if (command.token && *command.token != before.token) {
    say("'" + printable(command.mutex) + "' has token " + std::to_string(before.token) + ", not " +
        std::to_string(*command.token) + ": that term is over, nobody was evicted");
    return exit_code::kFree;
  }
  const OwnerView after(command.mutex,
                        client.evict(command.mutex, before.owner, before.token, command.how));
  const bool is_json = command.format == Format::kJson;
  const bool written = print(is_json ? after.json() + '\n' : text_of(before, after, command.how));
  if (!written || after.owner == before.owner) return exit_code::kUnavailable;
  return exit_code::kOk;
}

}  // namespace simba::cli
