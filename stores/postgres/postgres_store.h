#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "simba/postgres.h"
#include "simba/store.h"
#include "stores/kit/pool.h"
#include "stores/kit/shared_log.h"
#include "stores/kit/this_process.h"
#include "stores/postgres/connection.h"
#include "stores/postgres/endpoint.h"
#include "stores/postgres/listener.h"
#include "stores/postgres/mutex_table.h"

namespace simba::postgres {

// The six calls: a connection from the pool, a statement, and hints.
//
// Threads: any number of calls at once; each does its I/O on the caller's thread. In a forked child
// every call throws Error (kMisuse) and the destructor leaves everything as it is.
class PostgresStore : public Store {
 public:
  explicit PostgresStore(const PostgresOptions& options);
  PostgresStore(const PostgresStore&) = delete;
  PostgresStore& operator=(const PostgresStore&) = delete;
  ~PostgresStore() override;

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
  using Names = std::vector<std::string_view>;

  template <class Work>
  auto call(Lane lane, LocalTime deadline, kit::Pool::Reserve reserve, Work work);
  void check_fork() const;
  void announce(const Names& freed);

  const kit::ThisProcess process_;
  const std::shared_ptr<kit::SharedLog> log_ = std::make_shared<kit::SharedLog>();
  const std::shared_ptr<kit::SharedLog::Ticket> own_lines_;
  const std::shared_ptr<Endpoint> endpoint_;
  const StoreTraits traits_;
  const std::shared_ptr<const MutexTable> table_;
  const std::shared_ptr<kit::Listener> listener_;
  const std::shared_ptr<kit::SharedLog::Ticket> shared_lines_;
  kit::Pool pool_;
};

}  // namespace simba::postgres
