#include <mysql.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "simba/mysql.h"
#include "stores/kit/documented.h"
#include "stores/kit/server_contract.h"
#include "stores/mysql/literal.h"

namespace simba::testing {
namespace {

// A connection of somebody who may do everything.
class Session {
 public:
  explicit Session(const MysqlOptions& options) : connection_(mysql_init(nullptr)) {
    const auto& [host, port] = options.hosts.at(0);
    if (mysql_real_connect(connection_, host.c_str(), options.user.c_str(),
                           options.password.c_str(), options.database.c_str(), port, nullptr,
                           0) == nullptr) {
      throw std::runtime_error(mysql_error(connection_));
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { mysql_close(connection_); }

  // Returns how many rows there are.
  std::uint64_t run(const std::string& sql) {
    if (mysql_query(connection_, sql.c_str()) != 0) {
      throw std::runtime_error(sql + ": " + mysql_error(connection_));
    }
    MYSQL_RES* const rows = mysql_store_result(connection_);
    const std::uint64_t count = rows != nullptr ? mysql_num_rows(rows) : 0;
    mysql_free_result(rows);
    return count;
  }

 private:
  MYSQL* const connection_;
};

// A transaction that holds the lock of a row.
class RowLock {
 public:
  RowLock(const MysqlOptions& options, std::string_view mutex) : session_(options) {
    session_.run("BEGIN");
    const auto rows = session_.run(
        "SELECT 1 FROM simba_mutex WHERE mutex = " + mysql::literal(mutex) + " FOR UPDATE");
    if (rows != 1) throw std::runtime_error("there is no row");
  }

 private:
  Session session_;
};

// As docs/mysql.md tells an administrator to.
bool make_roles(const MysqlOptions& options) {
  Session session(options);
  session.run("DO GET_LOCK('simba:roles', 60)");
  for (const char* user : {"contender", "observer"}) {
    session.run(std::string("CREATE USER IF NOT EXISTS '") + user + "'@'%'");
  }
  const std::string page = kit::documented(SIMBA_DOCS "/mysql.md", "GRANT ");
  for (const std::string& sql : kit::statements_in(page)) session.run(sql);
  return true;
}

class MysqlContract : public ServerContract {
 public:
  explicit MysqlContract(std::string more) : ServerContract("mariadb"), more_(std::move(more)) {}

  std::shared_ptr<void> block_row(std::string_view mutex) override {
    return std::make_shared<RowLock>(mysql_options(server().url()), mutex);
  }

 private:
  std::shared_ptr<Store> open() override {
    [[maybe_unused]] static const bool has_roles =
        !server().is_shared() || make_roles(mysql_options(server().url()));
    return open_mysql(mysql_options(as("contender", url_apart("connect_timeout=") + more_)));
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
                  "PagesNameWhatIsThereExactlyOnceWhateverComesAndGoes",
                  "AnEvictionTakesTheNameAndKeepsTheLease",
                  "AnEvictionCanFreeAtOnce",
                  "AReleaseElsewhereWakesTheWaiter",
                  "OddNamesAreRefusedOrKeptApart",
                  "CriticalSectionsNeverOverlap"});

}  // namespace
}  // namespace simba::testing
