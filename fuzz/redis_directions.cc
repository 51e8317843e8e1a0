// What Redis servers say of other servers, and of themselves: the map of a cluster, the answer of a
// sentinel, MOVED and ASK, INFO and TIME.
#include <optional>
#include <set>
#include <string>

#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/redis/directions.h"
#include "stores/redis/names.h"
#include "stores/redis/server_info.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

namespace redis = simba::redis;

const redis::Address kAsked{"10.0.0.1", 7'000};

// What one can connect to, and nothing of this machine's file system.
void check(const redis::Address& address) {
  require(!address.is_socket(), "no server sends us to a socket of this machine");
  require(!address.host.empty() && address.port != 0, "an address has a host and a port");
  for (const char c : address.host) require(c > ' ' && c != 0x7f, "a host can be printed");
}

void check(const std::vector<redis::SlotRange>& ranges) {
  std::set<int> seen;
  for (const redis::SlotRange& range : ranges) {
    check(range.master);
    require(range.from <= range.to && range.to < redis::kSlots, "a range is of slots");
    for (int slot = range.from; slot <= range.to; ++slot) {
      require(seen.insert(slot).second, "a slot has one master");
    }
  }
}

void read(const redis::Reply& reply) {
  const std::string where = "redis at nowhere";
  accepts<simba::Error>([&] { check(redis::read_slots(reply, kAsked, where)); });
  accepts<simba::Error>([&] {
    if (const auto master = redis::read_master(reply, where)) check(*master);
  });
  for (const auto& asked : {std::optional(kAsked), std::optional<redis::Address>()}) {
    if (const auto target = redis::read_redirect(reply, asked)) check(*target);
  }
  const redis::ServerInfo info = redis::read_info(reply.text, reply);
  require(info.version >= 0, "a version is a number");
  require(info.version_text.find('\n') == info.version_text.npos, "of one line");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  redis::ReplyReader reader;
  redis::Replies replies;
  const std::string bytes(data, data + size);
  accepts<simba::Error>([&] { reader.feed(bytes, replies); });
  for (const redis::Reply& reply : replies) read(reply);
  return 0;
}
