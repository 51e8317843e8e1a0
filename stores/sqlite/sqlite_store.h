#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "simba/sqlite.h"
#include "stores/sqlite/database.h"
#include "stores/sqlite/listener.h"

namespace simba::sqlite {

// The six calls on one path. Each asks afterwards, and one that writes before as well, once more if
// it waited for the lock, whether the path still leads to the file it spoke with; if not, the call
// fails with kReplaced, and the next one opens what is there now.
//
// Threads: any number of calls at once. In a forked child every call throws Error (kMisuse) and the
// destructor leaves everything as it is.
class SqliteStore : public Store {
 public:
  SqliteStore(SqliteOptions options, Host host);
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;
  ~SqliteStore() override;

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
  using Access = Database::Access;
  using Names = std::vector<std::string_view>;

  template <class Work>
  auto call(const std::shared_ptr<Database>& database, Access access, LocalTime deadline,
            Work work);
  void check_fork() const;
  std::shared_ptr<Database> open_database(LocalTime deadline) const;
  std::shared_ptr<Database> current(LocalTime deadline);
  [[noreturn]] void give_up(const std::shared_ptr<Database>& database);
  // Wakes who waits for these: of this process directly, of others by the bells.
  void announce(Database& database, const Names& freed);

  const StoreTraits traits_;
  const SqliteOptions options_;
  const Host host_;
  const std::shared_ptr<Listener> listener_;
  const unsigned forks_;

  std::mutex mutex_;
  std::shared_ptr<Database> database_;  // guarded by mutex_; null: to be opened by the next call
};

// The store, with a host of the caller's choice.
std::shared_ptr<Store> open(const SqliteOptions& options, const Host& host);

}  // namespace simba::sqlite
