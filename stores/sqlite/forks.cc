#include "stores/sqlite/forks.h"

#include <pthread.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "simba/error.h"

namespace simba::sqlite {
namespace {

std::atomic<unsigned> forks{0};

// Never destroyed: a store in a static variable may go after this file's statics.
struct Table {
  std::mutex mutex;
  std::multimap<FileId, const OpenFile*> open;  // guarded by mutex
  std::set<FileId> inherited;  // guarded by mutex; open in the process this one was forked from
};
Table& table() {
  static auto* const it = new Table;
  return *it;
}

void before_fork() { table().mutex.lock(); }
void after_fork_in_parent() { table().mutex.unlock(); }
void after_fork_in_child() {
  Table& files = table();
  for (const auto& [id, file] : files.open) files.inherited.insert(id);
  files.open.clear();
  forks.fetch_add(1, std::memory_order_relaxed);
  files.mutex.unlock();
}

void hear_of_forks() {
  static const int once = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(once);
}

}  // namespace

unsigned fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

OpenFile::OpenFile(FileId id, LetGo let_go) : id_(id), let_go_(std::move(let_go)) {
  hear_of_forks();
  const std::lock_guard lock(table().mutex);
  if (table().inherited.contains(id)) {
    throw Error(Errc::kMisuse,
                "sqlite: forked: the parent process has this file open, and SQLite's locks do not "
                "survive a fork; open the store after the fork only, or exec a new program");
  }
  table().open.emplace(id, this);
}

OpenFile::~OpenFile() {
  const std::lock_guard lock(table().mutex);
  std::erase_if(table().open, [this](const auto& each) { return each.second == this; });
}

void OpenFile::give_up() const {
  std::vector<std::shared_ptr<void>> gone;  // closed without the lock
  const std::lock_guard lock(table().mutex);
  // Whoever has the file open now may have opened it since.
  if (is_given_up()) return;
  const auto [from, to] = table().open.equal_range(id_);
  for (auto it = from; it != to; ++it) {
    it->second->given_up_.store(true, std::memory_order_release);
    gone.push_back(it->second->let_go_());
  }
}

}  // namespace simba::sqlite
