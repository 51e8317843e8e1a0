#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "simba/postgres.h"
#include "testing/contract.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::testing {
namespace {

// A transaction that holds the lock of a row.
class RowLock {
 public:
  RowLock(const std::string& url, const std::string& mutex)
      : connection_(PQconnectdb(url.c_str())) {
    run("BEGIN");
    const char* values[] = {mutex.c_str()};
    PGresult* locked =
        PQexecParams(connection_, "SELECT FROM simba_mutex WHERE mutex = $1 FOR UPDATE", 1, nullptr,
                     values, nullptr, nullptr, 0);
    if (PQntuples(locked) != 1) throw std::runtime_error(PQerrorMessage(connection_));
    PQclear(locked);
  }
  RowLock(const RowLock&) = delete;
  RowLock& operator=(const RowLock&) = delete;
  ~RowLock() { PQfinish(connection_); }

 private:
  void run(const char* sql) { PQclear(PQexec(connection_, sql)); }
  PGconn* connection_;
};

// The server of SIMBA_TEST_POSTGRES_URL, else one that all cases share.
class PostgresContract : public StoreContract {
 public:
  PostgresContract() {
    if (const char* given =
            std::getenv("SIMBA_TEST_POSTGRES_URL")) {  // NOLINT(concurrency-mt-unsafe)
      url_ = given;
      return;
    }
    try {
      shared_ = std::make_unique<servers::SharedServer>("postgres");
      url_ = shared_->address();
    } catch (const servers::Unavailable& reason) {
      unavailable_ = reason.what();
    }
  }

  // Stores of one process share their listening connection: another name keeps these apart.
  std::shared_ptr<Store> connect() override {
    if (!unavailable_.empty()) {
      [&] { GTEST_SKIP() << unavailable_; }();
      return nullptr;
    }
    static std::atomic<int> count{0};
    const std::string name = "application_name=contract-" + std::to_string(++count);
    auto store =
        open_postgres(postgres_options(url_ + (url_.find('?') == url_.npos ? "?" : "&") + name));
    store->list("", 1, BootClock::now() + std::chrono::seconds(10));  // it knows of a pooler now
    return store;
  }
  std::shared_ptr<void> block_row(std::string_view mutex) override {
    return std::make_shared<RowLock>(postgres_options(url_).conninfo, std::string(mutex));
  }

 private:
  std::unique_ptr<servers::SharedServer> shared_;
  std::string url_, unavailable_;
};

SIMBA_CONTRACT(Postgres, [] { return std::make_unique<PostgresContract>(); })

}  // namespace
}  // namespace simba::testing
