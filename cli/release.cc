#include <nlohmann/json.hpp>

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

std::string named(const OwnerView& owner) {
  return printable(owner.owner) + ", token " + std::to_string(owner.token);
}

std::string text_of(const OwnerView& before, const OwnerView& after, Eviction how) {
  const std::string taken = "'" + printable(before.mutex) + "' was taken from " + named(before);
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

bool is_evicted(const OwnerView& before, const OwnerView& after) {
  return after.owner != before.owner;
}

// The state afterwards has no word of whom it hit.
std::string json_of(const OwnerView& before, const OwnerView& after, Eviction how) {
  using Json = nlohmann::ordered_json;
  const bool evicted = is_evicted(before, after);
  Json object = after.fields();
  object["evicted_owner"] = evicted ? Json(before.owner) : Json();
  object["evicted_token"] = evicted ? Json(before.token) : Json();
  object["two_may_own"] = evicted && how == Eviction::kFreeNow;
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

int tell(const OwnerView& before, const OwnerView& after, const ReleaseCommand& command) {
  const bool evicted = is_evicted(before, after);
  if (!evicted) {
    say("'" + printable(before.mutex) + "' is still held by " + named(before) + ": try again");
  }
  bool written = true;
  if (command.format == Format::kJson) {
    written = print(json_of(before, after, command.how));
  } else if (evicted) {
    written = print(text_of(before, after, command.how));
  }
  if (!written) return exit_code::kUnavailable;
  return evicted ? exit_code::kOk : exit_code::kNotAcquired;
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
  return tell(before, after, command);
}

}  // namespace simba::cli
