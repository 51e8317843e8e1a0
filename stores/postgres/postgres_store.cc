#include "stores/postgres/postgres_store.h"

#include <utility>

#include "stores/kit/batches.h"
#include "stores/kit/claims.h"
#include "stores/kit/forked.h"
#include "stores/postgres/schema.h"

namespace simba::postgres {
namespace {

constexpr std::size_t kMaxMutex = 66, kMaxOwner = 128;  // the columns
constexpr std::size_t kReserved = 1;                    // connections that acquisitions cannot take

kit::Pool::Options pool_options(const std::shared_ptr<Endpoint>& endpoint,
                                const std::shared_ptr<const MutexTable>& table) {
  kit::Pool::Options options;
  options.name = "postgres at " + endpoint->where();
  options.most = endpoint->options().connections;
  options.reserved = kReserved;
  options.open = [endpoint, table](const kit::StopSignal& stop) -> std::unique_ptr<kit::Pooled> {
    auto connection = std::make_unique<Connection>(*endpoint, stop);
    prepare_connection(*connection, table->statements(),
                       BootClock::now() + endpoint->connect_timeout());
    return connection;
  };
  return options;
}

// While a claim waits, which it does most of the time then.
std::string blocked_advice(const Endpoint& endpoint) {
  return "postgres at " + endpoint.where() +
         ": SELECT pid, pg_blocking_pids(pid) FROM pg_stat_activity WHERE wait_event_type = "
         "'Lock' tells whose transaction it is: let it end, or end it by pg_terminate_backend()";
}

}  // namespace

PostgresStore::PostgresStore(const PostgresOptions& options)
    : own_lines_(kit::SharedLog::add(log_, options.log)),
      endpoint_(std::make_shared<Endpoint>(kit::with_log(options, log_))),
      traits_{"postgres", kMaxMutex, kMaxOwner, false, false, blocked_advice(*endpoint_)},
      table_(std::make_shared<MutexTable>(*endpoint_)),
      listener_(listener_of(endpoint_, log_)),
      shared_lines_(kit::SharedLog::add(listener_->log(), options.log)),
      pool_(pool_options(endpoint_, table_)) {}

PostgresStore::~PostgresStore() {
  // A copy of the parent's: a lock in it may be held.
  if (!process_.is_still()) kit::leave_alone(listener_);
}

template <class Work>
auto PostgresStore::call(Lane lane, LocalTime deadline, kit::Pool::Reserve reserve, Work work) {
  check_fork();
  const kit::Pool::Borrowed borrowed = pool_.borrow(lane, deadline, reserve);
  auto& connection = static_cast<Connection&>(borrowed.get());
  try {
    return work(connection);
  } catch (const Error& error) {
    const auto* failure = dynamic_cast<const Failure*>(&error);
    pool_.note_failure(connection, error, failure != nullptr && failure->is_read_only());
    throw;
  }
}

Answers PostgresStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  return kit::send_checked(
      claims, [&](const Claim& claim) { kit::check_claim(traits_, claim); },
      [&](std::span<const Claim> good) {
        return kit::send_alike(good, [&](std::span<const Claim> alike) {
          const Lane lane = alike.front().renews() ? Lane::kKeep : Lane::kAsk;
          return call(lane, deadline, kit::Pool::Reserve::kNow, [&](Connection& connection) {
            return table_->contend(connection, alike, deadline);
          });
        });
      });
}

Answers PostgresStore::release(std::span<const Claim> claims, LocalTime deadline) {
  Names freed;
  Answers answers = kit::send_checked(
      claims,
      [&](const Claim& claim) {
        kit::check_term(traits_, claim.mutex, claim.wire_id, claim.token);
      },
      [&](std::span<const Claim> good) {
        return call(Lane::kKeep, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
          return table_->release(connection, good, deadline, freed);
        });
      });
  announce(freed);
  return answers;
}

Answers PostgresStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  return kit::send_checked(
      mutexes, [&](std::string_view mutex) { kit::check_name(traits_, mutex); },
      [&](std::span<const std::string_view> good) {
        return call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
          return table_->observe(connection, good, deadline);
        });
      });
}

Observation PostgresStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                                 Eviction how, LocalTime deadline) {
  kit::check_term(traits_, mutex, wire_id, token);
  const Claim term{mutex, wire_id, token, 0, {}, {}};
  const Answers after =
      call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
        if (table_->evict(connection, term, how, deadline)) announce({mutex});
        return table_->observe(connection, {&mutex, 1}, deadline);
      });
  if (const auto* error = std::get_if<Error>(&after.at(0))) throw Error(*error);
  return std::get<Observation>(after[0]);
}

std::unique_ptr<Watch> PostgresStore::watch(std::string_view mutex, std::string_view,
                                            std::function<void()> wake) {
  check_fork();
  if (endpoint_->is_behind_pooler()) return nullptr;
  return listener_->add(mutex, std::move(wake));
}

std::vector<Listed> PostgresStore::list(std::string_view prefix, std::string_view after,
                                        std::size_t limit, LocalTime deadline) {
  if (!prefix.empty()) kit::check_name(traits_, prefix);
  return call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
    return table_->list(connection, prefix, after, limit, deadline);
  });
}

void PostgresStore::check_fork() const {
  if (process_.is_still()) return;
  throw Error(Errc::kMisuse,
              "postgres: forked: this store was opened before the fork and is dead in the child; "
              "exec a program, or open the store after the fork");
}

void PostgresStore::announce(const Names& freed) {
  for (const std::string_view mutex : freed) listener_->wake(mutex);
}

}  // namespace simba::postgres

namespace simba::inline v0 {

std::shared_ptr<Store> open_postgres(const PostgresOptions& options) {
  return std::make_shared<postgres::PostgresStore>(options);
}

}  // namespace simba::inline v0
