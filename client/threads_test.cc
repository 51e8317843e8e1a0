// No thread outlives what it was made for.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "simba/simba.h"

namespace simba {
namespace {

using namespace std::chrono_literals;

// The kernel lists a thread that was joined for a moment longer, but says that it is on its way
// out.
bool is_exiting(const std::filesystem::path& task) {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING
  std::ifstream stat(task / "stat");
  std::string line;
  if (!std::getline(stat, line)) return true;  // it is gone
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 6; ++i) fields >> skipped;  // state ppid pgrp session tty tpgid
  unsigned long flags = 0;
  fields >> flags;
  return (flags & kExiting) != 0;
}

// By number and name.
std::set<std::string> threads() {
  std::set<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (is_exiting(task.path())) continue;
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    found.insert(task.path().filename().string() + " " + name);
  }
  return found;
}

bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!done() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  return done();
}

// Everything that a client gives out, at work at the same time.
void use_all_of(const std::string& url) {
  Client client = connect(url);
  MutexRetrievalService observer(client, make_contender("lock", {}), client.options().contend);
  observer.start();
  SimbaLocker locker(client, "lock");
  locker.lock();
  SimbaLocker waiting(client, "lock");
  EXPECT_FALSE(waiting.try_lock_for(20ms));
  MutexContendService service(client, make_contender("leader", {}));
  service.start();
  Scheduler scheduler(client, "work", ScheduleConfig::rate(0ms, 1ms), [](const Term&) {});
  scheduler.start();
  HeldMutex held;
  std::atomic<bool> is_held{false};
  acquire_async(client, "async", {}, [&](Acquired acquired) {
    held = std::move(acquired.held);
    is_held = true;
  });
  EXPECT_TRUE(eventually([&] {
    return observer.has_owner() && service.is_owner() && scheduler.runs() > 2 && is_held;
  }));
}

// A lock manager whose heart beats all the time. It goes with its client while a lock is held, and
// another one was left by a thread that has just ended.
void use_lock_manager_of(const std::string& url) {
  LockManager manager =
      LockManager::of(connect(url), {.lock_ttl = 500ms, .beat_interval = 1ms, .base_backoff = 1ms});
  std::atomic<int> beats{0};
  manager.on_beat([&](const Beat&) { ++beats; });
  LockManager::Lock left = manager.create_lock("left");
  LockManager::Lock held = manager.create_lock("held");
  held.lock();
  EXPECT_TRUE(eventually([&] { return beats > 2; }));
  std::thread([&] { left.lock(); }).join();
}

// A thread that is late is late now and then.
constexpr int kRounds = 10;

// With the first thread there is, a sanitizer begins one of its own.
std::set<std::string> threads_from_now_on() {
  std::thread([] {}).join();
  return threads();
}

TEST(Threads, NoneOutlivesWhatItWasMadeForOnMemory) {
  const std::set<std::string> before = threads_from_now_on();
  for (int round = 0; round < kRounds; ++round) {
    use_all_of("memory:");
    ASSERT_EQ(threads(), before) << "round " << round;
  }
}

TEST(Threads, NoneOutlivesTheLastHandleOfALockManager) {
  const std::set<std::string> before = threads_from_now_on();
  for (int round = 0; round < 3 * kRounds; ++round) {
    use_lock_manager_of("memory:");
    ASSERT_EQ(threads(), before) << "round " << round;
  }
}

TEST(Threads, NoneOutlivesWhatItWasMadeForOnSqlite) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "simba-threads-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::set<std::string> before = threads_from_now_on();
  for (int round = 0; round < kRounds; ++round) {
    use_all_of("sqlite:" + directory + "/locks.db");
    EXPECT_EQ(threads(), before) << "round " << round;
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace simba
