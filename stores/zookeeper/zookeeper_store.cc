#include "stores/zookeeper/zookeeper_store.h"

#include <algorithm>
#include <utility>

#include "stores/kit/claims.h"
#include "stores/zookeeper/evict.h"
#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/gathering.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/leave.h"
#include "stores/zookeeper/renewal.h"
#include "stores/zookeeper/take.h"
#include "stores/zookeeper/zookeeper_options.h"

namespace simba::zookeeper {
namespace {

constexpr std::size_t kLongestName = 255;
// Two checks each: about 30 KB, far from the megabyte a server takes in one request.
constexpr std::size_t kMostInTransaction = 100;

const StoreTraits& store_traits() {
  static const StoreTraits traits{"zookeeper", kLongestName, kLongestName, true, true};
  return traits;
}

void check_node_name(std::string_view mutex) {
  const std::string why = why_no_node_name(mutex);
  if (why.empty()) return;
  throw Error(Errc::kMisconfigured,
              "zookeeper: the mutex name '" + std::string(mutex) + "' cannot be used: " + why);
}

template <class Check>
std::optional<Error> trouble_with(Check check) {
  try {
    check();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

void check_claim(const Claim& claim) {
  kit::check_claim(store_traits(), claim);
  check_node_name(claim.mutex);
}

// A release says nothing of a lease.
void check_term(std::string_view mutex, std::string_view wire_id, Token token) {
  kit::check_term(store_traits(), mutex, wire_id, token);
  check_node_name(mutex);
}

void check_name(std::string_view mutex) {
  kit::check_name(store_traits(), mutex);
  check_node_name(mutex);
}

}  // namespace

ZookeeperStore::ZookeeperStore(std::shared_ptr<Connection> connection)
    : connection_(std::make_unique<std::shared_ptr<Connection>>(std::move(connection))) {}

ZookeeperStore::~ZookeeperStore() {
  if (!process_.is_still()) static_cast<void>(connection_.release());  // the parent's
}

const StoreTraits& ZookeeperStore::traits() const { return store_traits(); }

void ZookeeperStore::check_fork() const {
  if (process_.is_still()) return;
  throw Error(Errc::kMisuse,
              "zookeeper: forked: this store was opened before the fork and is dead in the child; "
              "exec a program, or open the store after the fork");
}

Round ZookeeperStore::begin(LocalTime deadline) const {
  check_fork();
  const std::shared_ptr<Session>& session = (*connection_)->session();
  std::shared_ptr<Handle> handle = session->connected(deadline);
  const LocalTime now = BootClock::now();
  if (now >= deadline) {
    throw Error(Errc::kTimeout, "zookeeper at " + session->where() +
                                    ": the deadline has passed; nothing was changed");
  }
  return {session, std::move(handle), now, deadline};
}

Answers ZookeeperStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  if (claims.empty()) return {};
  const Round round = begin(deadline);
  const auto gathering = std::make_shared<Gathering>(claims.size());
  std::vector<Renewal::Item> renewals;
  const auto send_renewals = [&] {
    if (!renewals.empty()) std::make_shared<Renewal>(round, std::exchange(renewals, {}))->start();
  };
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (auto trouble = trouble_with([&] { check_claim(claims[i]); })) {
      gathering->place(i)(std::move(*trouble));
      continue;
    }
    Wish wish = Wish::of(claims[i]);
    // A take that is repeated after its term began is a renewal of it.
    const bool runs =
        round.session->places().term(wish.mutex, wish.wire_id, 0, round.began).has_value();
    if (claims[i].renews() || runs) {
      renewals.push_back({std::move(wish), gathering->place(i)});
      if (renewals.size() == kMostInTransaction) send_renewals();
    } else {
      std::make_shared<Take>(round, std::move(wish), gathering->place(i))->start();
    }
  }
  send_renewals();
  return gathering->wait(round);
}

Answers ZookeeperStore::release(std::span<const Claim> claims, LocalTime deadline) {
  if (claims.empty()) return {};
  const Round round = begin(deadline);
  const auto gathering = std::make_shared<Gathering>(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    if (auto trouble = trouble_with([&] { check_term(claim.mutex, claim.wire_id, claim.token); })) {
      gathering->place(i)(std::move(*trouble));
    } else {
      std::make_shared<Leave>(round, Wish::of(claim), gathering->place(i))->start();
    }
  }
  return gathering->wait(round);
}

Answers ZookeeperStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  if (mutexes.empty()) return {};
  const Round round = begin(deadline);
  const auto gathering = std::make_shared<Gathering>(mutexes.size());
  for (std::size_t i = 0; i < mutexes.size(); ++i) {
    if (auto trouble = trouble_with([&] { check_name(mutexes[i]); })) {
      gathering->place(i)(std::move(*trouble));
      continue;
    }
    Wish wish;
    wish.mutex = mutexes[i];
    std::make_shared<Look>(round, std::move(wish), gathering->place(i))->start();
  }
  return gathering->wait(round);
}

Observation ZookeeperStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                                  Eviction how, LocalTime deadline) {
  check_term(mutex, wire_id, token);
  const auto gathering = std::make_shared<Gathering>(1);
  Wish wish;
  wish.mutex = mutex;
  wish.wire_id = wire_id;
  wish.token = token;
  const Round round = begin(deadline);
  std::make_shared<Evict>(round, std::move(wish), how, gathering->place(0))->start();
  Answers answers = gathering->wait(round);
  if (const auto* error = std::get_if<Error>(&answers[0])) throw Error(*error);
  return std::get<Observation>(answers[0]);
}

std::unique_ptr<Watch> ZookeeperStore::watch(std::string_view mutex, std::string_view wire_id,
                                             std::function<void()> wake) {
  check_fork();
  const std::shared_ptr<Session>& session = (*connection_)->session();
  return session->watch(mutex, wire_id, std::move(wake), session);
}

std::vector<Listed> ZookeeperStore::list(std::string_view prefix, std::string_view after,
                                         std::size_t limit, LocalTime deadline) {
  const Round round = begin(deadline);
  struct Names {
    std::mutex guard;
    std::vector<std::string> all;  // guarded by guard
  };
  const auto names = std::make_shared<Names>();
  const auto gathering = std::make_shared<Gathering>(1);
  round.handle->children(round.session->base(),
                         [names, round, done = gathering->place(0)](
                             int code, std::vector<std::string> all, const Stat&) {
                           if (code != ZOK && code != ZNONODE) {
                             return done(failure(code, "list the mutexes", round.session->where()));
                           }
                           {
                             const std::lock_guard lock(names->guard);
                             names->all = std::move(all);
                           }
                           done(Observation{});
                         });
  const Answers listed = gathering->wait(round);
  if (const auto* error = std::get_if<Error>(&listed[0])) throw Error(*error);
  std::vector<std::string> found;
  {
    const std::lock_guard lock(names->guard);
    for (std::string& name : names->all) {
      // Of nodes that others have made, one would be in the way of all.
      const bool is_mutex = !trouble_with([&] { check_name(name); });
      if (is_mutex && name > after && name.starts_with(prefix)) found.push_back(std::move(name));
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() > limit) found.resize(limit);
  const std::vector<std::string_view> views(found.begin(), found.end());
  const Answers answers = observe(views, deadline);
  std::vector<Listed> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (const auto* error = std::get_if<Error>(&answers[i])) throw Error(*error);
    out.push_back({std::move(found[i]), std::get<Observation>(answers[i])});
  }
  return out;
}

void ZookeeperStore::check_mutex(std::string_view mutex) const {
  Store::check_mutex(mutex);
  check_node_name(mutex);
}

std::shared_ptr<Store> open_alone(const ZookeeperOptions& options) {
  check_options(options);
  return std::make_shared<ZookeeperStore>(std::make_shared<Connection>(options));
}

}  // namespace simba::zookeeper

namespace simba::inline v0 {

std::shared_ptr<Store> open_zookeeper(const ZookeeperOptions& options) {
  zookeeper::check_options(options);
  return std::make_shared<zookeeper::ZookeeperStore>(zookeeper::Connection::shared(options));
}

}  // namespace simba::inline v0
