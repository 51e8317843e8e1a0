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
  std::mutex guard;
  std::map<const Session*, std::weak_ptr<Locks>> alive;  // guarded by guard
};

}  // namespace

Locks::Locks(Client client, const TemporalAlignmentStrategy& strategy)
    : client_(std::move(client)), strategy_(strategy) {}

std::shared_ptr<Locks> Locks::of(const Client& client,
                                 const std::optional<TemporalAlignmentStrategy>& strategy) {
  const TemporalAlignmentStrategy wanted = strategy.value_or(TemporalAlignmentStrategy{});
  static_cast<void>(wanted.contend_options(wanted.lock_ttl));
  static_cast<void>(client.session()->engine());  // says so in a forked child
  Table& table = Table::the();
  const std::lock_guard lock(table.guard);
  std::erase_if(table.alive, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<Locks>& slot = table.alive[client.session().get()];
  std::shared_ptr<Locks> locks = slot.lock();
  if (!locks) {
    slot = locks = std::make_shared<Locks>(client, wanted);
    locks->listen();
  } else if (strategy && locks->strategy() != *strategy) {
    throw Error(Errc::kMisuse,
                "this client has a lock manager already, with another strategy: a client has one; "
                "take it with LockManager::of(client), or make another client");
  }
  return locks;
}

void Locks::refuse_if_forked() const { static_cast<void>(client_.session()->engine()); }
bool Locks::is_forked() const { return client_.session()->is_forked(); }
Executor& Locks::executor() const { return client_.session()->engine().executor(); }

void Locks::claim(const std::string& id, std::uint64_t thread, const std::shared_ptr<void>& user) {
  const std::lock_guard lock(guard_);
  std::weak_ptr<void>& slot = users_[{id, thread}];
  const auto other = slot.lock();
  if (other && other != user) {
    throw Error(Errc::kMisuse, "this thread has a lock '" + id +
                                   "' already: use that one again (it is reentrant), or let it go "
                                   "first; a second one would wait for the first for ever");
  }
  slot = user;
  some_id_ = id;
}

void Locks::unclaim(const std::string& id, std::uint64_t thread, const void* user) {
  const std::lock_guard lock(guard_);
  const auto it = users_.find({id, thread});
  if (it == users_.end()) return;
  const auto other = it->second.lock();
  if (!other || other.get() == user) users_.erase(it);
}

void Locks::add(const std::string& id, const std::shared_ptr<Hold>& hold) {
  const std::lock_guard lock(guard_);
  sweep();
  holds_.emplace(id, hold);
}

// Threads come and go: what they used must not grow the tables for ever.
void Locks::sweep() {
  if (holds_.size() + users_.size() < sweep_at_) return;
  std::erase_if(holds_, [](const auto& each) {
    const auto hold = each.second.lock();
    return !hold || (hold->has_ended() && !hold->is_held());
  });
  std::erase_if(users_, [](const auto& each) { return each.second.expired(); });
  sweep_at_ = std::max<std::size_t>(2 * (holds_.size() + users_.size()), 64);
}

bool Locks::holds(std::string_view id) const {
  const auto [from, to] = holds_.equal_range(id);
  return std::any_of(from, to, [](const auto& each) {
    const auto hold = each.second.lock();
    return hold && hold->is_held();
  });
}

std::vector<std::shared_ptr<Hold>> Locks::held() {
  std::vector<std::shared_ptr<Hold>> found;
  const std::lock_guard lock(guard_);
  for (const auto& [id, weak] : holds_) {
    auto hold = weak.lock();
    if (hold && hold->is_held()) found.push_back(std::move(hold));
  }
  return found;
}

void Locks::count_ended_thread() {
  const std::lock_guard lock(guard_);
  ++next_.released;
}

}  // namespace simba::core
