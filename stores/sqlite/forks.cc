#include "stores/sqlite/forks.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <set>

#include "simba/error.h"

namespace simba::sqlite {
namespace {

std::atomic<unsigned> forks{0};

// Never destroyed: a store in a static variable may go after this file's statics.
struct Table {
  std::mutex mutex;
  std::multiset<FileId> open;  // guarded by mutex
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
  files.inherited.insert(files.open.begin(), files.open.end());
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

OpenFile::OpenFile(FileId id) : id_(id) {
  hear_of_forks();
  const std::lock_guard lock(table().mutex);
  if (table().inherited.contains(id)) {
    throw Error(Errc::kMisuse,
                "sqlite: forked: the parent process has this file open, and SQLite's locks do not "
                "survive a fork; open the store after the fork only, or exec a new program");
  }
  table().open.insert(id);
}

OpenFile::~OpenFile() {
  const std::lock_guard lock(table().mutex);
  if (const auto it = table().open.find(id_); it != table().open.end()) table().open.erase(it);
}

}  // namespace simba::sqlite
