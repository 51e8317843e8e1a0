// The read-modify-write counter of the lock manager's article: many threads of many processes add
// to one number in a file, and no update is lost.
//
//   simba_example_counter [URL]
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "simba/simba.h"

using namespace std::chrono_literals;

namespace {

constexpr int kProcesses = 4, kThreads = 4, kRounds = 25;

// Nothing but the lock keeps two of these apart.
void add_one(const std::string& file) {
  int count = 0;
  std::ifstream(file) >> count;
  std::this_thread::yield();
  std::ofstream(file) << count + 1;
}

bool count(const simba::Client& client, const std::string& file) {
  // [lock_manager]
  simba::LockManager manager = simba::LockManager::of(client);          // one per client
  simba::LockManager::Lock lock = manager.create_lock("counter", 30s);  // not active yet
  for (int round = 0; round < kRounds; ++round) {
    if (!lock.try_lock_for(60s)) return false;
    add_one(file);  // read, modify, write
    lock.unlock();  // idempotent
  }
  // [lock_manager]
  return true;
}

// One process: its own client, one manager, many threads.
int run_process(const std::string& url, const std::string& file) {
  const simba::Client client = simba::connect(url);
  std::vector<std::thread> threads;
  std::atomic<bool> all_counted{true};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      if (!count(client, file)) all_counted = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all_counted ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  char directory[] = "/tmp/simba-counter-XXXXXX";
  if (!mkdtemp(directory)) return 1;
  const std::string file = std::string(directory) + "/counter";
  const std::string url = argc > 1 ? argv[1] : "sqlite:" + std::string(directory) + "/locks.db";
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(run_process(url, file));
    children.push_back(child);
  }
  bool ok = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  int total = 0;
  std::ifstream(file) >> total;
  std::filesystem::remove_all(directory);
  const int expected = kProcesses * kThreads * kRounds;
  std::printf("%d processes of %d threads counted to %d of %d\n", kProcesses, kThreads, total,
              expected);
  return ok && total == expected ? 0 : 1;
}
