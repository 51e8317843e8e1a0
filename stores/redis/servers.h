#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "stores/redis/dialer.h"
#include "stores/redis/node.h"

namespace simba::redis {

// Who serves which mutex: one server for all, or the masters of a cluster by slot.
//
// Threads: any.
// Errors: Error.
class Servers {
 public:
  explicit Servers(std::shared_ptr<const Dialer> dialer);

  bool is_cluster() const { return dialer_->is_cluster(); }
  // Asks the cluster for its map where it is not known.
  std::shared_ptr<Node> of_slot(std::uint16_t slot, LocalTime deadline);
  // All that hold keys.
  std::vector<std::shared_ptr<Node>> masters(LocalTime deadline);
  std::shared_ptr<Node> at(const Address& address);

  // The cluster said so.
  void moved(std::uint16_t slot, const Address& address);
  // The map may be wrong: it is asked for again.
  void doubt();
  // The same, and asks at once. Where nobody answers, the map stays as it is.
  void ask_again(LocalTime deadline);
  // Told, on any thread, when slots have moved, or may have.
  void on_change(std::function<void()> told);
  // Of a slot, as far as it is known now; null: it is not.
  std::shared_ptr<Node> known(std::uint16_t slot) const;

 private:
  std::shared_ptr<Node> at_locked(const Address& address);
  void learn(LocalTime deadline);
  void read_map(const Reply& map, const Address& asked);
  void tell();

  const std::shared_ptr<const Dialer> dialer_;
  mutable std::mutex guard_;
  // All below guarded by guard_.
  std::map<Address, std::shared_ptr<Node>> nodes_;  // of a cluster
  std::vector<std::shared_ptr<Node>> slots_;        // empty: not known
  std::function<void()> told_;
  const std::shared_ptr<Node> only_;  // null: a cluster
};

}  // namespace simba::redis
