#include <mysql.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "simba/mysql.h"
#include "stores/kit/server_contract.h"
#include "stores/mysql/literal.h"

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

class MysqlContract : public ServerContract {
 public:
  explicit MysqlContract(std::string more) : ServerContract("mariadb"), more_(std::move(more)) {}

  std::shared_ptr<void> block_row(std::string_view mutex) override {
    return std::make_shared<RowLock>(mysql_options(server().url()), mutex);
  }

 private:
  std::shared_ptr<Store> open() override {
    return open_mysql(mysql_options(url_apart("connect_timeout=") + more_));
  }

  const std::string more_;
};

SIMBA_CONTRACT(Mysql, [] { return std::make_unique<MysqlContract>(""); })

// The statements for MySQL, which MariaDB understands too: what differs is in the single calls.
[[maybe_unused]] const bool kAdded =
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
