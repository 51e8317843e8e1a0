// A thousand mutexes that one process holds: what their renewal takes.
#include <sqlite3.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "simba/client.h"
#include "simba/locker.h"
#include "stores/sqlite/sqlite_fixture.h"
#include "testing/faulty_store.h"

namespace simba::sqlite {
namespace {

constexpr std::size_t kMutexes = 1000;
constexpr std::size_t kHandful = 16;
constexpr std::size_t kSmallBatch = 50;

// Transactions of this process that write, of whichever connection.
std::atomic<std::size_t> transactions{0};

// A statement that has ended: one that began a transaction, or was one by itself.
int count_one(unsigned, void* db, void* ended, void*) {
  auto* const statement = static_cast<sqlite3_stmt*>(ended);
  if (sqlite3_stmt_readonly(statement) != 0) return 0;
  const bool begins = std::string_view(sqlite3_sql(statement)).starts_with("BEGIN");
  if (begins || sqlite3_get_autocommit(static_cast<sqlite3*>(db)) != 0) ++transactions;
  return 0;
}

int count_transactions(sqlite3* db, char**, const sqlite3_api_routines*) {
  return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, count_one, db);
}

// As SQLite's manual asks for it: called for every connection that is opened.
void (*const kForEachConnection)() = reinterpret_cast<void (*)()>(count_transactions);

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

bool eventually(const std::function<bool()>& done) {
  const LocalTime until = local_now() + 60s;
  while (!done()) {
    if (local_now() >= until) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

// Holds renewals up until it is opened: what comes to be due meanwhile waits together.
class RenewalGate : public testing::FaultyStore {
 public:
  using FaultyStore::FaultyStore;

  void open() {
    const std::lock_guard lock(guard_);
    is_open_ = true;
    opened_.notify_all();
  }

  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    if (claims[0].renews()) {
      std::unique_lock lock(guard_);
      opened_.wait(lock, [&] { return is_open_; });
    }
    ++writes;
    return FaultyStore::contend(claims, deadline);
  }
  Answers release(std::span<const Claim> claims, LocalTime deadline) override {
    ++writes;
    return FaultyStore::release(claims, deadline);
  }
  std::atomic<std::size_t> writes{0};  // calls

  std::size_t renewed_claims() const {
    std::size_t all = 0;
    for (const auto& call : asked()) all += call.is_renewal() ? call.claims.size() : 0;
    return all;
  }
  bool has_renewed_all() const {
    std::set<std::string> renewed;
    for (const auto& call : asked()) {
      if (!call.is_renewal()) continue;
      for (const auto& claim : call.claims) renewed.insert(claim.mutex);
    }
    return renewed.size() == kMutexes;
  }

 private:
  std::mutex guard_;
  std::condition_variable opened_;
  bool is_open_ = false;  // guarded by guard_
};

class SqliteHeld : public SqliteTest {
 public:
  SqliteHeld() { sqlite3_auto_extension(kForEachConnection); }
  ~SqliteHeld() override { sqlite3_cancel_auto_extension(kForEachConnection); }
};

TEST_F(SqliteHeld, AThousandAreRenewedByAHandfulOfThreadsInOneTransactionPerBatch) {
  ClientOptions options;
  options.contend.ttl = 20s;
  options.contend.transition = 10s;
  options.contend.renew_at = 0.05;
  const auto store = std::make_shared<RenewalGate>(open_sqlite(this->options()));
  const std::size_t before = transactions;
  {
    const Client client(store, options);
    std::vector<SimbaLocker> lockers;
    for (std::size_t i = 0; i < kMutexes; ++i) {
      lockers.emplace_back(client, "m" + std::to_string(i)).lock();
    }
    const LocalTime all_due = local_now() + Timing::of(options.contend).renew;
    EXPECT_TRUE(eventually([&] { return local_now() > all_due; }));
    store->open();
    ASSERT_TRUE(eventually([&] { return store->has_renewed_all(); }));
    EXPECT_LE(threads(), kHandful);
    // From now on those that went together are due together.
    store->forget();
    ASSERT_TRUE(eventually([&] { return store->has_renewed_all(); }));
    EXPECT_LE(threads(), kHandful);
    EXPECT_GE(store->renewed_claims() / store->renewals(), kSmallBatch)
        << store->renewed_claims() << " renewals in " << store->renewals() << " calls";
  }
  EXPECT_GE(transactions - before, 2 * kMutexes)
      << "each was locked and unlocked by a call of its own";
  EXPECT_LE(transactions - before, store->writes) << "a batch took more than one transaction";
}

}  // namespace
}  // namespace simba::sqlite
