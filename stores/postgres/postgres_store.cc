#include "stores/postgres/postgres_store.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "stores/kit/claims.h"
#include "stores/kit/forked.h"
#include "stores/postgres/schema.h"

namespace simba::postgres {
namespace {

constexpr std::size_t kMaxMutex = 66, kMaxOwner = 128;  // the columns
constexpr std::size_t kReserved = 1;                    // connections that acquisitions cannot take

// Sends on what `check` lets pass, and puts the answers where they belong: the others are answered
// with what `check` threw.
template <class Item, class Check, class Send>
Answers send_good(std::span<const Item> items, Check check, Send send) {
  std::vector<Item> good;
  std::vector<std::size_t> places;
  Answers answers(items.size(), Blocked{});
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      check(items[i]);
      good.push_back(items[i]);
      places.push_back(i);
    } catch (const Error& error) {
      answers[i] = error;
    }
  }
  if (good.empty()) return answers;
  Answers sent = send(std::span<const Item>(good));
  for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(sent[i]);
  return answers;
}

// The same, without copies where all are good.
template <class Item, class Check, class Send>
Answers send_checked(std::span<const Item> items, Check check, Send send) {
  if (items.empty()) return {};
  const bool all_good = std::all_of(items.begin(), items.end(), [&](const Item& item) {
    try {
      check(item);
      return true;
    } catch (const Error&) {
      return false;
    }
  });
  return all_good ? send(items) : send_good(items, check, send);
}

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

}  // namespace

PostgresStore::PostgresStore(const PostgresOptions& options)
    : traits_{"postgres", kMaxMutex, kMaxOwner, false},
      process_(getpid()),
      endpoint_(std::make_shared<Endpoint>(options)),
      table_(std::make_shared<MutexTable>(*endpoint_)),
      listener_(Listener::of(endpoint_)),
      pool_(pool_options(endpoint_, table_)) {}

PostgresStore::~PostgresStore() {
  // A copy of the parent's: a lock in it may be held.
  if (getpid() != process_) kit::leave_alone(listener_);
}

template <class Work>
auto PostgresStore::call(Lane lane, LocalTime deadline, kit::Pool::Reserve reserve, Work work) {
  check_fork();
  const kit::Pool::Borrowed borrowed = pool_.borrow(lane, deadline, reserve);
  auto& connection = static_cast<Connection&>(borrowed.get());
  try {
    return work(connection);
  } catch (const Error& error) {
    // The server is gone, or was: the other connections would only fail one call each.
    if (error.errc() == Errc::kUnreachable) pool_.drop_idle();
    throw;
  }
}

Answers PostgresStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  return send_checked(
      claims, [&](const Claim& claim) { kit::check_claim(traits_, claim); },
      [&](std::span<const Claim> good) { return contend_alike(good, deadline); });
}

// Takes and renewals are different statements; the engine never mixes them.
Answers PostgresStore::contend_alike(std::span<const Claim> claims, LocalTime deadline) {
  const bool renews = claims.front().renews();
  const bool alike = std::all_of(claims.begin(), claims.end(),
                                 [&](const Claim& each) { return each.renews() == renews; });
  if (alike) {
    return call(
        renews ? Lane::kKeep : Lane::kAsk, deadline, kit::Pool::Reserve::kNow,
        [&](Connection& connection) { return table_->contend(connection, claims, deadline); });
  }
  std::vector<Claim> sorted(claims.begin(), claims.end());
  std::vector<std::size_t> places(claims.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  const auto middle = std::stable_partition(places.begin(), places.end(),
                                            [&](std::size_t i) { return claims[i].renews(); });
  for (std::size_t i = 0; i < places.size(); ++i) sorted[i] = claims[places[i]];
  const auto renewals = static_cast<std::size_t>(middle - places.begin());
  const std::span<const Claim> all(sorted);
  Answers answers(claims.size(), Blocked{});
  std::size_t next = 0;
  for (const auto& part : {all.first(renewals), all.subspan(renewals)}) {
    for (Answer& answer : contend_alike(part, deadline)) {
      answers[places[next++]] = std::move(answer);
    }
  }
  return answers;
}

Answers PostgresStore::release(std::span<const Claim> claims, LocalTime deadline) {
  Names freed;
  Answers answers = send_checked(
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
  return send_checked(
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
  return listener_->add(mutex, std::move(wake));
}

std::vector<Listed> PostgresStore::list(std::string_view prefix, std::size_t limit,
                                        LocalTime deadline) {
  if (!prefix.empty()) kit::check_name(traits_, prefix);
  return call(Lane::kAsk, deadline, kit::Pool::Reserve::kLater, [&](Connection& connection) {
    return table_->list(connection, prefix, limit, deadline);
  });
}

void PostgresStore::check_fork() const {
  if (getpid() == process_) return;
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
