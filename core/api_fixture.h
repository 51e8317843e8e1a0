#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "simba/client.h"
#include "simba/memory.h"
#include "testing/faulty_store.h"
#include "testing/fork.h"

// The public classes with real threads and the real clock; what their machine decides is tested in
// virtual time.
namespace simba {

using namespace std::chrono_literals;
using testing::FaultyStore;

// True as soon as it is done; false when it never was.
inline bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return done();
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Runs `body` in a forked child: what it returns, or 1000 and the signal that ended it; what hangs
// is ended after a minute.
inline int in_child(const std::function<int()>& body) {
  const pid_t pid = testing::fork_program();
  if (pid == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(60);
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// What Error (kMisuse) the call throws says; "none": it throws nothing.
inline std::string misuse_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisuse) << error.what();
    return error.what();
  }
}

// Outlasts every case, and so does the patience of stop(): what happens soon has another reason.
inline ContendOptions long_lease() {
  ContendOptions options;
  options.ttl = 60s;
  options.transition = 30s;
  options.jitter = {0ms, 20ms};
  options.grace = 20s;
  return options;
}

// Its owner hears soon that it was evicted, and never loses it otherwise.
inline ContendOptions soon_renewed() {
  ContendOptions options = long_lease();
  options.renew_at = 0.005;
  return options;
}

inline ClientOptions with(const ContendOptions& contend) {
  ClientOptions options;
  options.contend = contend;
  return options;
}

// A store with faults, and the rows of the mutex "m" behind it.
class ApiTest : public ::testing::Test {
 protected:
  const std::shared_ptr<Store> rows = make_memory();  // without faults
  const std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(rows);

  Observation row(std::string_view name = "m") {
    return std::get<Observation>(rows->observe({&name, 1}, BootClock::now() + 60s).at(0));
  }
  bool is_free() { return row().is_free(); }
  // Somebody else's term, by hand.
  void take(const std::string& id, milliseconds ttl = 60s, milliseconds transition = 30s) {
    const Claim claim{"m", id, 0, 0, ttl, transition};
    rows->contend({&claim, 1}, BootClock::now() + 60s);
  }
  void release(const std::string& id) {
    const Claim claim{"m", id, 0, 0, 60s, 30s};
    rows->release({&claim, 1}, BootClock::now() + 60s);
  }
};

}  // namespace simba
