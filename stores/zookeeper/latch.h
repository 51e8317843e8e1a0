#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The layout of Curator's LeaderLatch, as names:
//
//   /simba/MUTEX                                  a container: the server removes it once empty
//   /simba/MUTEX/_c_<uuid>-latch-<10 digits>      a contender; data: its id
//
// The number is the server's count of the children the container has had. The lowest leads. The
// uuid is made of the wire id, so that a node whose creation was never answered is found again, by
// whoever knows the wire id.
namespace simba::zookeeper {

// "_c_<uuid>-": what the name of this wire id's node begins with.
std::string latch_prefix(std::string_view wire_id);
// The whole name but for the number.
std::string latch_stem(std::string_view wire_id);

// The number of a latch node. None: not a latch node; others may have put it there.
std::optional<std::int64_t> latch_number(std::string_view name);

// The latch nodes among the children, the leader first.
std::vector<std::string> latch_order(std::vector<std::string> children);

// Of those, the nodes of a wire id, the oldest first: an earlier session's may stand there for a
// while.
std::vector<std::string> latches_of(std::string_view wire_id,
                                    const std::vector<std::string>& order);

// The server counts in 32 bits with a sign, and what comes after the last number sorts before all
// others. From here on nobody joins: the queue runs empty, the container goes, and the count begins
// anew.
inline constexpr std::int64_t kLastNumber = 2'147'483'647 - 1'000'000;

// Why a node cannot have this name; empty: it can.
std::string why_no_node_name(std::string_view name);

}  // namespace simba::zookeeper
