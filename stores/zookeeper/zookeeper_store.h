#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "simba/zookeeper.h"
#include "stores/kit/this_process.h"
#include "stores/zookeeper/errand.h"
#include "stores/zookeeper/session.h"

namespace simba::zookeeper {

// The six calls: each mutex of a call is an errand of its own, and all are under way at once.
//
// Threads: any number of calls at once. In a forked child every call throws Error (kMisuse) and the
// destructor touches nothing.
class ZookeeperStore : public Store {
 public:
  explicit ZookeeperStore(std::shared_ptr<Connection> connection);
  ~ZookeeperStore() override;
  ZookeeperStore(const ZookeeperStore&) = delete;
  ZookeeperStore& operator=(const ZookeeperStore&) = delete;

  const StoreTraits& traits() const override;
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override;
  Answers release(std::span<const Claim> claims, LocalTime deadline) override;
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override;
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override;
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override;
  void check_mutex(std::string_view mutex) const override;

 private:
  Round begin(LocalTime deadline) const;
  void check_fork() const;

  const kit::ThisProcess process_;
  std::unique_ptr<std::shared_ptr<Connection>> connection_;  // so that a child can let go of it
};

// A store with a session of its own, whatever the process has open already.
std::shared_ptr<Store> open_alone(const ZookeeperOptions& options);

}  // namespace simba::zookeeper
