#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stores/redis/address.h"
#include "stores/redis/reply.h"

namespace simba::redis {

// What servers say of where other servers are, read with suspicion: the password goes there. Each
// is a host and a port, and never the path of a socket of this machine.
//
// Errors: Error (kCorrupt) for what is no such answer. `where` is who gave it.

struct SlotRange {
  std::uint16_t from = 0, to = 0;  // both are in it
  Address master;
};
// More than a cluster can have nodes, by its own documentation.
inline constexpr std::size_t kMostMasters = 1'000;
// Of CLUSTER SLOTS; no slot is in two ranges. A master without a name is the one that was asked.
std::vector<SlotRange> read_slots(const Reply& reply, const Address& asked,
                                  const std::string& where);

// Of SENTINEL get-master-addr-by-name. None: it knows no such master.
std::optional<Address> read_master(const Reply& reply, const std::string& where);

// Of an error MOVED or ASK, "MOVED 3999 127.0.0.1:6381". None: it names no address.
std::optional<Address> read_redirect(const Reply& error, const std::optional<Address>& asked);

}  // namespace simba::redis
