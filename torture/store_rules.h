#pragma once

#include <chrono>

#include "simba/time.h"

namespace simba::torture {

// What the documents of a store promise less of its answers than a lease object in memory would. No
// claim is decided by any of it.
struct StoreRules {
  // docs/zookeeper.md: a take that is not granted leaves a place in a queue, and who stands first
  // owns, also before it is told.
  bool queues = false;
  // So long ago may have been true what an observer is told, or a claim that was not granted.
  //   docs/mongodb.md: for a moment after an election a new primary does not know what a majority
  //     has. Claims are answered after a write, and are not old.
  //   docs/zookeeper.md: what the server of the session has heard; and a waiter may be answered
  //     from what its last hint brought along.
  //   docs/mysql.md: of Galera, what the node that is asked has applied. A replica is asked while
  //     nobody writes; it refuses no claim, only the primary does.
  nanoseconds old_question{}, old_refusal{};
  bool is_old_after_failover_only = false;
  // docs/postgres.md: a release need not be on the disk when it is answered. A server that dies
  // then, or the standby that takes its place, has the owner back, until the end of its lease.
  bool may_forget_release = false;
  // docs/mysql.md, docs/postgres.md, docs/redis.md: where the URL names one server and that one
  // only reads, as it does once it was demoted, claims are denied. No server of ours is demoted.
  bool denies_while_it_only_reads = false;
  bool is_ours = false;  // nobody but us kills the server, or sets its clock
};

// Servers that follow hear of the leader, or are left out, well within this: the default limits of
// MongoDB (electionTimeoutMillis) and ZooKeeper (syncLimit) are 10 s.
inline constexpr nanoseconds kOldestRead = std::chrono::seconds{10};

}  // namespace simba::torture
