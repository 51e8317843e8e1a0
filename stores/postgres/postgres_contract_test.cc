#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "simba/postgres.h"
#include "stores/kit/documented.h"
#include "stores/kit/server_contract.h"
#include "testing/servers/postgres_server.h"

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

// As docs/postgres.md tells an administrator to. One at a time: the server does not let two grant
// something on one table.
bool make_roles(const std::string& url) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> admin(PQconnectdb(url.c_str()), PQfinish);
  const auto run = [&](const std::string& sql) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(admin.get(), sql.c_str()),
                                                              PQclear);
    const ExecStatusType status = PQresultStatus(done.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return;
    throw std::runtime_error(sql + ": " + PQerrorMessage(admin.get()));
  };
  run("SELECT pg_advisory_lock(4711)");
  for (const std::string role : {"contender", "observer"}) {
    run("DO $$ BEGIN CREATE ROLE " + role +
        " LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  }
  const std::string page = kit::documented(SIMBA_DOCS "/postgres.md", "GRANT ");
  for (const std::string& sql : kit::statements_in(page)) run(sql);
  return true;
}

class PostgresContract : public ServerContract {
 public:
  PostgresContract() : ServerContract("postgres") {}

  std::shared_ptr<void> block_row(std::string_view mutex) override {
    return std::make_shared<RowLock>(postgres_options(server().url()).conninfo, std::string(mutex));
  }

 private:
  std::shared_ptr<Store> open() override {
    [[maybe_unused]] static const bool has_roles =
        !server().is_shared() || make_roles(postgres_options(server().url()).conninfo);
    auto store =
        open_postgres(postgres_options(as("contender", url_apart("application_name=contract-"))));
    store->list("", {}, 1,
                BootClock::now() + std::chrono::seconds(10));  // it knows of a pooler now
    return store;
  }
};

SIMBA_CONTRACT(Postgres, [] { return std::make_unique<PostgresContract>(); })

// Through PgBouncer, which lends a server connection for one transaction: the statements are sent
// another way there. Where there is none, or the server is yours, that way without it.
class PooledContract : public PostgresContract {
 private:
  std::shared_ptr<Store> open() override {
    const std::string direct = url_apart("pooler=transaction&application_name=pooled-");
    if (!bouncer_ && server().is_shared()) start_bouncer();
    return open_postgres(
        postgres_options(bouncer_ ? bouncer_->url(direct.substr(direct.find("pooler="))) : direct));
  }

  void start_bouncer() try {
    const std::string to = server().url();
    const int port = std::stoi(to.substr(to.find(':', to.find('@')) + 1));
    bouncer_ = std::make_unique<servers::PgBouncer>(static_cast<std::uint16_t>(port));
    bouncer_->start();
  } catch (const servers::Unavailable&) {
  }

  std::unique_ptr<servers::PgBouncer> bouncer_;
};

[[maybe_unused]] const bool kAdded =
    add_contract("PostgresPooled", [] { return std::make_unique<PooledContract>(); },
                 {"AHeldMutexIsNotTakenByAnother", "ARepeatedTakeOfTheSameWireIdKeepsItsToken",
                  "ARenewalNeverRetakesWhatHasExpired", "ARenewalNeedsTheTokenOfTheTerm",
                  "ALateReleaseOfAnEarlierTermChangesNothing",
                  "TokensGrowOverReleasesExpiriesEvictionsAndReconnects",
                  "OfManyWhoClaimAtOnceOneIsGranted", "AHundredClaimsAreAnsweredInOrder",
                  "OneBadClaimDoesNotFailItsNeighbours", "OneBlockedRowDoesNotHoldUpItsNeighbours",
                  "ManyMutexesOfOneProcessAreAllRenewed", "ManyMutexesAreObservedInOneCallInOrder",
                  "TheListIsSortedAndKnowsPrefixAndLimit", "AnEvictionTakesTheNameAndKeepsTheLease",
                  "AnEvictionCanFreeAtOnce", "CriticalSectionsNeverOverlap"});

}  // namespace
}  // namespace simba::testing
