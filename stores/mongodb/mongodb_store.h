#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "simba/mongodb.h"
#include "simba/store.h"
#include "stores/kit/pool.h"
#include "stores/kit/shared_log.h"
#include "stores/kit/this_process.h"
#include "stores/mongodb/changes.h"
#include "stores/mongodb/connection.h"
#include "stores/mongodb/endpoint.h"
#include "stores/mongodb/mutex_collection.h"

namespace simba::mongodb {

// The six calls: a client from the pool, a command, and hints.
//
// Threads: any number of calls at once; each does its I/O on the caller's thread. In a forked child
// every call throws Error (kMisuse) and the destructor leaves everything as it is.
class MongodbStore : public Store {
 public:
  explicit MongodbStore(const MongodbOptions& options);
  MongodbStore(const MongodbStore&) = delete;
  MongodbStore& operator=(const MongodbStore&) = delete;
  ~MongodbStore() override;

  const StoreTraits& traits() const override { return traits_; }
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override;
  Answers release(std::span<const Claim> claims, LocalTime deadline) override;
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override;
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override;
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override;

 private:
  template <class Work>
  auto call(Lane lane, LocalTime deadline, kit::Pool::Reserve reserve, Work work);
  void check_fork() const;

  const StoreTraits traits_;
  const kit::ThisProcess process_;
  const std::shared_ptr<kit::SharedLog> log_ = std::make_shared<kit::SharedLog>();
  const std::shared_ptr<kit::SharedLog::Ticket> own_lines_;
  const std::shared_ptr<Endpoint> endpoint_;
  // Goes after all that borrows: then the user may destroy a pool that is theirs.
  struct Return {
    ~Return() { endpoint.await_return(); }
    Endpoint& endpoint;
  } const return_{*endpoint_};
  const MutexCollection mutexes_;
  const std::shared_ptr<kit::Listener> changes_;
  const std::shared_ptr<kit::SharedLog::Ticket> shared_lines_;
  kit::Pool pool_;
};

}  // namespace simba::mongodb
