#include "stores/mysql/mysql_store.h"

#include <algorithm>
#include <utility>

#include "stores/kit/batches.h"
#include "stores/kit/claims.h"
#include "stores/kit/forked.h"
#include "stores/mysql/bell.h"
#include "stores/mysql/schema.h"

namespace simba::mysql {
namespace {

constexpr std::size_t kMaxMutex = 66;  // the column
constexpr std::size_t kReserved = 1;   // connections that acquisitions cannot take

kit::Pool::Options pool_options(const std::shared_ptr<Endpoint>& endpoint) {
  kit::Pool::Options options;
  options.name = "mysql at " + endpoint->where();
  options.most = endpoint->options().connections;
  options.reserved = kReserved;
  options.open = [endpoint](const kit::StopSignal& stop) -> std::unique_ptr<kit::Pooled> {
    auto connection = std::make_unique<Connection>(*endpoint, stop);
    prepare_connection(*connection, BootClock::now() + endpoint->connect_timeout());
    return connection;
  };
  return options;
}

// While a claim waits, which it does most of the time then. The server's limit of time does not say
// for what.
std::string blocked_advice(const Endpoint& endpoint) {
  return "mysql at " + endpoint.where() +
         ": information_schema.INNODB_TRX and SHOW PROCESSLIST tell whose transaction it is: "
         "let it end, or end it by KILL. If it is a commit of ours that waits for a replica which "
         "does not acknowledge it, mend the replica; if it is nobody's, the server is slow: its "
         "disk, or a trigger";
}

}  // namespace

MysqlStore::MysqlStore(const MysqlOptions& options)
    : own_lines_(kit::SharedLog::add(log_, options.log)),
      endpoint_(std::make_shared<Endpoint>(kit::with_log(options, log_))),
      traits_{"mysql", kMaxMutex, options.max_id_length, false, false, blocked_advice(*endpoint_)},
      listener_(Listener::of(endpoint_, log_)),
      shared_lines_(kit::SharedLog::add(listener_->log(), options.log)),
      pool_(pool_options(endpoint_)) {}

MysqlStore::~MysqlStore() {
  // A copy of the parent's: a lock in it may be held.
  if (!process_.is_still()) kit::leave_alone(listener_);
}

template <class Work>
auto MysqlStore::call(Lane lane, LocalTime deadline, kit::Pool::Reserve reserve, Work work) {
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

Answers MysqlStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  return kit::send_checked(
      claims, [&](const Claim& claim) { kit::check_claim(traits_, claim); },
      [&](std::span<const Claim> good) {
        return kit::send_alike(good, [&](std::span<const Claim> alike) {
          const Lane lane = alike.front().renews() ? Lane::kKeep : Lane::kAsk;
          Answers answers =
              call(lane, deadline, kit::Pool::Reserve::kNow, [&](Connection& connection) {
                return mysql::contend(connection, alike, released_, deadline);
              });
          for (std::size_t i = 0; i < alike.size(); ++i) {
            const std::string_view taker = alike[i].renews() ? "" : alike[i].wire_id;
            note(alike[i].mutex, taker, answers[i]);
          }
          return answers;
        });
      });
}

Answers MysqlStore::release(std::span<const Claim> claims, LocalTime deadline) {
  return kit::send_checked(
      claims,
      [&](const Claim& claim) {
        kit::check_term(traits_, claim.mutex, claim.wire_id, claim.token);
      },
      [&](std::span<const Claim> good) {
        return call(Lane::kKeep, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
          std::vector<Freed> freed;
          Answers answers = mysql::release(connection, good, deadline, freed);
          announce(connection, freed, deadline);
          return answers;
        });
      });
}

Answers MysqlStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  return kit::send_checked(
      mutexes, [&](std::string_view mutex) { kit::check_name(traits_, mutex); },
      [&](std::span<const std::string_view> good) {
        Answers answers = call(
            Lane::kAsk, deadline, kit::Pool::Reserve::kLater,
            [&](Connection& connection) { return mysql::observe(connection, good, deadline); });
        for (std::size_t i = 0; i < good.size(); ++i) note(good[i], {}, answers[i]);
        return answers;
      });
}

Observation MysqlStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                              Eviction how, LocalTime deadline) {
  kit::check_term(traits_, mutex, wire_id, token);
  const Claim term{mutex, wire_id, token, 0, {}, {}};
  const Answers after =
      call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
        if (const auto freed = mysql::evict(connection, term, how, deadline)) {
          announce(connection, {&*freed, 1}, deadline);
        }
        return mysql::observe(connection, {&mutex, 1}, deadline);
      });
  if (const auto* error = std::get_if<Error>(&after.at(0))) throw Error(*error);
  return std::get<Observation>(after[0]);
}

std::unique_ptr<Watch> MysqlStore::watch(std::string_view mutex, std::string_view,
                                         std::function<void()> wake) {
  check_fork();
  return listener_->add(mutex, std::move(wake));
}

std::vector<Listed> MysqlStore::list(std::string_view prefix, std::string_view after,
                                     std::size_t limit, LocalTime deadline) {
  if (!prefix.empty()) kit::check_name(traits_, prefix);
  return call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
    return mysql::list(connection, prefix, after, limit, deadline);
  });
}

void MysqlStore::note(std::string_view mutex, std::string_view taker, const Answer& answer) {
  const auto* seen = std::get_if<Observation>(&answer);
  if (seen != nullptr) listener_->note(mutex, taker, *seen);
}

void MysqlStore::check_fork() const {
  if (process_.is_still()) return;
  throw Error(Errc::kMisuse,
              "mysql: forked: this store was opened before the fork and is dead in the child; "
              "exec a program, or open the store after the fork");
}

// The release is done, whatever becomes of this: nothing here fails it.
void MysqlStore::announce(Connection& connection, std::span<const Freed> freed,
                          LocalTime deadline) try {
  std::vector<std::uint64_t> waiters;
  for (const Freed& each : freed) {
    listener_->wake(each.mutex);
    if (freed.size() == 1) released_.add(hash_of(*endpoint_, each.mutex));
    for (const std::uint64_t waiter : each.waiters) {
      if (waiter != 0 && waiter != listener_->connection_id()) waiters.push_back(waiter);
    }
  }
  std::sort(waiters.begin(), waiters.end());
  waiters.erase(std::unique(waiters.begin(), waiters.end()), waiters.end());
  for (const std::uint64_t waiter : waiters) ring(connection, waiter, deadline);
} catch (const Error&) {
}

}  // namespace simba::mysql

namespace simba::inline v0 {

std::shared_ptr<Store> open_mysql(const MysqlOptions& options) {
  return std::make_shared<mysql::MysqlStore>(options);
}

}  // namespace simba::inline v0
