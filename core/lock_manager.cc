#include "core/lock_manager.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/session.h"

namespace simba::core {
namespace {

// Which client has which manager. Never destroyed: a lock in a static variable may go after it.
struct Table {
  Table() {
    // Nobody else holds the lock in a forked child.
    pthread_atfork([] { the().guard.lock(); }, [] { the().guard.unlock(); },
                   [] { the().guard.unlock(); });
  }
  static Table& the() {
    static auto* const table = new Table;
    return *table;
  }
  struct Entry {
    std::weak_ptr<Locks> locks;
    const void* users_client = nullptr;  // as in StoreTraits
  };
  std::mutex guard;
  std::map<const Session*, Entry> alive;  // guarded by guard
};

// Two clients on one client of the user's would each have a manager. Needs the table's guard.
void refuse_a_second(const Table& table, const void* users_client) {
  for (const auto& [session, other] : table.alive) {
    if (users_client == nullptr || other.users_client != users_client) continue;
    throw Error(
        Errc::kMisuse,
        "the driver's client that this store was given has a lock manager already, made "
        "for another simba::Client: it has one; use that one, or give this store a driver's "
        "client of its own");
  }
}

}  // namespace

Locks::Locks(Client client, const TemporalAlignmentStrategy& strategy)
    : client_(std::move(client)),
      strategy_(strategy),
      heart_(std::make_shared<Heart>(*client_.session(), strategy)) {
  heart_->listen();
}

std::shared_ptr<Locks> Locks::of(const Client& client,
                                 const std::optional<TemporalAlignmentStrategy>& strategy) {
  const TemporalAlignmentStrategy wanted = strategy.value_or(TemporalAlignmentStrategy{});
  static_cast<void>(wanted.contend_options(wanted.lock_ttl));
  static_cast<void>(client.session()->engine());  // says so in a forked child
  Table& table = Table::the();
  const std::lock_guard lock(table.guard);
  std::erase_if(table.alive, [](const auto& each) { return each.second.locks.expired(); });
  const auto found = table.alive.find(client.session().get());
  auto locks = found == table.alive.end() ? nullptr : found->second.locks.lock();
  if (!locks) {
    const void* const users_client = client.session()->engine().store().traits().users_client;
    refuse_a_second(table, users_client);
    locks = std::make_shared<Locks>(client, wanted);
    table.alive[client.session().get()] = {locks, users_client};
  } else if (strategy && locks->strategy() != *strategy) {
    throw Error(Errc::kMisuse,
                "this client has a lock manager already, with another strategy: a client has one; "
                "take it with LockManager::of(client), or make another client");
  }
  return locks;
}

void Locks::refuse_if_forked() const { static_cast<void>(client_.session()->engine()); }
bool Locks::is_forked() const { return client_.session()->is_forked(); }

void Locks::claim(const std::string& id, std::uint64_t thread, const std::shared_ptr<void>& user) {
  const std::lock_guard lock(guard_);
  // Threads come and go: what they used must not grow the table for ever.
  if (users_.size() >= sweep_at_) {
    std::erase_if(users_, [](const auto& each) { return each.second.expired(); });
    sweep_at_ = std::max<std::size_t>(2 * users_.size(), 64);
  }
  std::weak_ptr<void>& slot = users_[{id, thread}];
  const auto other = slot.lock();
  if (other && other != user) {
    throw Error(Errc::kMisuse, "this thread has a lock '" + id +
                                   "' already: use that one again (it is reentrant), or let it go "
                                   "first; a second one would wait for the first for ever");
  }
  slot = user;
}

void Locks::unclaim(const std::string& id, std::uint64_t thread, const void* user) {
  const std::lock_guard lock(guard_);
  const auto it = users_.find({id, thread});
  if (it == users_.end()) return;
  const auto other = it->second.lock();
  if (!other || other.get() == user) users_.erase(it);
}

}  // namespace simba::core
