#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "stores/redis/dialer.h"
#include "stores/redis/directions.h"
#include "stores/redis/node.h"

namespace simba::redis {

// Who serves which mutex: one server for all, or the masters of a cluster by slot. A node that has
// no slot any more, no call under way and nobody who listens there is forgotten, unless the options
// name it.
//
// Threads: any.
// Errors: Error.
class Servers {
 public:
  explicit Servers(std::shared_ptr<const Dialer> dialer);

  bool is_cluster() const { return dialer_->is_cluster(); }
  // Asks the cluster for its map where it is not known, or where the node that it names is in
  // doubt.
  std::shared_ptr<Node> of_slot(std::uint16_t slot, LocalTime deadline);
  // All that hold keys.
  std::vector<std::shared_ptr<Node>> masters(LocalTime deadline);
  std::shared_ptr<Node> at(const Address& address);

  // The cluster said so.
  void moved(std::uint16_t slot, const Address& address);
  // What the map says of this node may be wrong: whoever wants it asks again. What it says of the
  // others stays true meanwhile.
  void doubt(const Node& node);
  // Asks at once. Where nobody answers, the map stays as it is, and the trouble is thrown.
  void learn(LocalTime deadline);
  // Told, on any thread, when slots have moved, or may have.
  void on_change(std::function<void()> told);
  // Of a slot, as far as it is known now; null: it is not.
  std::shared_ptr<Node> known(std::uint16_t slot) const;
  // How many nodes of a cluster it remembers.
  std::size_t count() const;

 private:
  using Nodes = std::vector<std::shared_ptr<Node>>;

  // Both need the lock, and leave to the caller what goes without it: the end of a node waits for
  // its threads.
  std::shared_ptr<Node> at_locked(const Address& address, Nodes& unused);
  void forget_unused(Nodes& unused);
  // To be asked for the map, the most likely to know it and to answer first.
  Nodes candidates();
  void install(const std::vector<SlotRange>& ranges, const Address& source);
  void tell();

  const std::shared_ptr<const Dialer> dialer_;
  mutable std::mutex guard_;
  // All below guarded by guard_.
  std::map<Address, std::shared_ptr<Node>> nodes_;  // of a cluster
  std::vector<std::shared_ptr<Node>> slots_;        // empty: not known
  std::set<Address> doubted_;                       // some of nodes_, until there is a new map
  std::optional<Address> source_;                   // who gave the map
  std::function<void()> told_;
  const std::shared_ptr<Node> only_;  // null: a cluster
};

}  // namespace simba::redis
