#include <mysql.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "simba/mysql.h"
#include "stores/mysql/literal.h"
#include "testing/contract.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::testing {
namespace {

// A transaction that holds the lock of a row.
class RowLock {
 public:
  RowLock(const MysqlOptions& options, std::string_view mutex) : connection_(mysql_init(nullptr)) {
    const auto& [host, port] = options.hosts.at(0);
    if (mysql_real_connect(connection_, host.c_str(), options.user.c_str(),
                           options.password.c_str(), options.database.c_str(), port, nullptr,
                           0) == nullptr) {
      throw std::runtime_error(mysql_error(connection_));
    }
    run("BEGIN");
    run("SELECT 1 FROM simba_mutex WHERE mutex = " + mysql::literal(mutex) + " FOR UPDATE");
    MYSQL_RES* rows = mysql_store_result(connection_);
    if (rows == nullptr || mysql_num_rows(rows) != 1) throw std::runtime_error("there is no row");
    mysql_free_result(rows);
  }
  RowLock(const RowLock&) = delete;
  RowLock& operator=(const RowLock&) = delete;
  ~RowLock() { mysql_close(connection_); }

 private:
  void run(const std::string& sql) {
    if (mysql_query(connection_, sql.c_str()) == 0) return;
    throw std::runtime_error(mysql_error(connection_));
  }
  MYSQL* const connection_;
};

// The server of SIMBA_TEST_MYSQL_URL, else one that all cases share.
class MysqlContract : public StoreContract {
 public:
  explicit MysqlContract(std::string more) : more_(std::move(more)) {
    if (const char* given = std::getenv("SIMBA_TEST_MYSQL_URL")) {  // NOLINT(concurrency-mt-unsafe)
      url_ = given;
      return;
    }
    try {
      shared_ = std::make_unique<servers::SharedServer>("mariadb");
      url_ = shared_->address();
    } catch (const servers::Unavailable& reason) {
      unavailable_ = reason.what();
    }
  }

  // Stores of one process share the connection that waits: another timeout keeps these apart.
  std::shared_ptr<Store> connect() override {
    if (!unavailable_.empty()) {
      [&] { GTEST_SKIP() << unavailable_; }();
      return nullptr;
    }
    static std::atomic<int> count{0};
    const std::string apart = "connect_timeout=" + std::to_string(10 + ++count);
    return open_mysql(
        mysql_options(url_ + (url_.find('?') == url_.npos ? "?" : "&") + apart + more_));
  }
  std::shared_ptr<void> block_row(std::string_view mutex) override {
    return std::make_shared<RowLock>(mysql_options(url_), mutex);
  }

 private:
  const std::string more_;
  std::unique_ptr<servers::SharedServer> shared_;
  std::string url_, unavailable_;
};

SIMBA_CONTRACT(Mysql, [] { return std::make_unique<MysqlContract>(""); })

// The statements for MySQL, which MariaDB understands too: what differs is in the single calls.
[[maybe_unused]] const bool added =
    add_contract("MysqlDialect", [] { return std::make_unique<MysqlContract>("&dialect=mysql"); },
                 {"AFreeMutexIsTaken",
                  "AHeldMutexIsNotTakenByAnother",
                  "ARepeatedTakeOfTheSameWireIdKeepsItsToken",
                  "ARenewalKeepsTheTokenAndExtendsTheLease",
                  "ARenewalNeverCreates",
                  "ARenewalNeverRetakesWhatHasExpired",
                  "ARenewalNeedsTheTokenOfTheTerm",
                  "AReleaseFreesTheMutex",
                  "ALateReleaseOfAnEarlierTermChangesNothing",
                  "NobodyEntersBeforeTheTransitionEnds",
                  "TokensGrowOverReleasesExpiriesEvictionsAndReconnects",
                  "ANewTokenIsAboveTheFloor",
                  "OfManyWhoClaimAtOnceOneIsGranted",
                  "AHundredClaimsAreAnsweredInOrder",
                  "OneBadClaimDoesNotFailItsNeighbours",
                  "OneBlockedRowDoesNotHoldUpItsNeighbours",
                  "ManyMutexesOfOneProcessAreAllRenewed",
                  "ManyMutexesAreObservedInOneCallInOrder",
                  "TheListIsSortedAndKnowsPrefixAndLimit",
                  "AnEvictionTakesTheNameAndKeepsTheLease",
                  "AnEvictionCanFreeAtOnce",
                  "AReleaseElsewhereWakesTheWaiter",
                  "OddNamesAreRefusedOrKeptApart",
                  "CriticalSectionsNeverOverlap"});

}  // namespace
}  // namespace simba::testing
