#include "stores/mongodb/mongodb_store.h"

#include <utility>

#include "stores/kit/batches.h"
#include "stores/kit/claims.h"
#include "stores/kit/forked.h"

namespace simba::mongodb {
namespace {

constexpr std::size_t kMaxMutex = 512, kMaxOwner = 128;  // bytes; an index entry has 1,024
constexpr std::size_t kReserved = 1;                     // clients that acquisitions cannot take

kit::Pool::Options pool_options(const std::shared_ptr<Endpoint>& endpoint) {
  kit::Pool::Options options;
  options.name = "mongodb at " + endpoint->where();
  options.most = endpoint->options().connections;
  options.reserved = kReserved;
  options.open = [endpoint](const kit::StopSignal& stop) -> std::unique_ptr<kit::Pooled> {
    return std::make_unique<Connection>(endpoint, stop);
  };
  return options;
}

}  // namespace

MongodbStore::MongodbStore(const MongodbOptions& options)
    : traits_{.name = "mongodb",
              .max_mutex_length = kMaxMutex,
              .max_wire_id_length = kMaxOwner,
              .users_client = options.pool},
      own_lines_(kit::SharedLog::add(log_, options.log)),
      endpoint_(Endpoint::make(kit::with_log(options, log_))),
      mutexes_(*endpoint_),
      changes_(changes_of(endpoint_, log_)),
      shared_lines_(kit::SharedLog::add(changes_->log(), options.log)),
      pool_(pool_options(endpoint_)) {}

MongodbStore::~MongodbStore() {
  if (process_.is_still()) return;
  // Copies of the parent's: locks in them may be held, threads of the driver are not here.
  kit::leave_alone(endpoint_);
  kit::leave_alone(changes_);
}

template <class Work>
auto MongodbStore::call(Lane lane, LocalTime deadline, kit::Pool::Reserve reserve, Work work) {
  check_fork();
  const kit::Pool::Borrowed borrowed = pool_.borrow(lane, deadline, reserve);
  return work(static_cast<Connection&>(borrowed.get()));
}

Answers MongodbStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  return kit::send_checked(
      claims, [&](const Claim& claim) { kit::check_claim(traits_, claim); },
      [&](std::span<const Claim> good) {
        return kit::send_alike(good, [&](std::span<const Claim> alike) {
          const Lane lane = alike.front().renews() ? Lane::kKeep : Lane::kAsk;
          return call(lane, deadline, kit::Pool::Reserve::kNow, [&](Connection& connection) {
            return mutexes_.contend(connection, alike, deadline);
          });
        });
      });
}

Answers MongodbStore::release(std::span<const Claim> claims, LocalTime deadline) {
  return kit::send_checked(
      claims,
      [&](const Claim& claim) {
        kit::check_term(traits_, claim.mutex, claim.wire_id, claim.token);
      },
      [&](std::span<const Claim> good) {
        const bool freed = call(
            Lane::kKeep, deadline, kit::Pool::Reserve::kLater,
            [&](Connection& connection) { return mutexes_.release(connection, good, deadline); });
        // Which of many, nobody said: a hint too many does no harm.
        for (const Claim& claim : good) {
          if (freed) changes_->wake(claim.mutex);
        }
        return Answers(good.size(), Observation{});
      });
}

Answers MongodbStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  return kit::send_checked(
      mutexes, [&](std::string_view mutex) { kit::check_name(traits_, mutex); },
      [&](std::span<const std::string_view> good) {
        return call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
          return mutexes_.observe(connection, good, deadline);
        });
      });
}

Observation MongodbStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                                Eviction how, LocalTime deadline) {
  kit::check_term(traits_, mutex, wire_id, token);
  const Claim term{mutex, wire_id, token, 0, {}, {}};
  const Answers after =
      call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
        if (mutexes_.evict(connection, term, how, deadline)) changes_->wake(mutex);
        return mutexes_.observe(connection, {&mutex, 1}, deadline);
      });
  if (const auto* error = std::get_if<Error>(&after.at(0))) throw Error(*error);
  return std::get<Observation>(after[0]);
}

std::unique_ptr<Watch> MongodbStore::watch(std::string_view mutex, std::string_view,
                                           std::function<void()> wake) {
  check_fork();
  return changes_->add(mutex, std::move(wake));
}

std::vector<Listed> MongodbStore::list(std::string_view prefix, std::string_view after,
                                       std::size_t limit, LocalTime deadline) {
  if (!prefix.empty()) kit::check_name(traits_, prefix);
  return call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
    return mutexes_.list(connection, prefix, after, limit, deadline);
  });
}

void MongodbStore::check_fork() const {
  if (process_.is_still()) return;
  throw Error(Errc::kMisuse,
              "mongodb: forked: this store was opened before the fork and is dead in the child; "
              "exec a program, or open the store after the fork");
}

}  // namespace simba::mongodb

namespace simba::inline v0 {

std::shared_ptr<Store> open_mongodb(const MongodbOptions& options) {
  return std::make_shared<mongodb::MongodbStore>(options);
}

}  // namespace simba::inline v0
