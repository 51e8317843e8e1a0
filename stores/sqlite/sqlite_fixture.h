#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "stores/sqlite/sqlite_store.h"

// What the tests of this store share: a directory of their own, a host whose clocks they move, and
// processes.
namespace simba::sqlite {

using namespace std::chrono_literals;

inline std::atomic<std::int64_t> fake_boot_ms{1'000'000};
inline std::atomic<std::int64_t> fake_wall_us{1'700'000'000'000'000};

inline Host fake_host(std::string boot_id = "11111111-1111-1111-1111-111111111111") {
  return {std::move(boot_id), [] { return fake_boot_ms.load(); },
          [] { return fake_wall_us.load(); }};
}

inline LocalTime soon() { return local_now() + 5s; }

class SqliteTest : public ::testing::Test {
 public:
  SqliteTest() {
    char pattern[] = "/tmp/simba-sqlite-XXXXXX";
    directory = mkdtemp(pattern);
    file = directory / "locks.db";
  }
  ~SqliteTest() override {
    std::filesystem::permissions(directory, std::filesystem::perms{0700});  // some take it away
    std::filesystem::remove_all(directory);
  }

 protected:
  SqliteOptions options() const { return {.file = file}; }
  std::shared_ptr<Store> open_store(const Host& host = fake_host()) const {
    return open(options(), host);
  }
  static void pass(milliseconds time) { fake_boot_ms += time.count(); }

  std::filesystem::path directory, file;
};

// Counts hints, waits for them, and knows who called the last.
class Hints {
 public:
  std::function<void()> wake() {
    return [this] {
      on_ = std::this_thread::get_id();
      ++count_;
    };
  }
  int count() const { return count_; }
  std::thread::id on() const { return on_; }
  bool wait_for(int count) const {
    const LocalTime end = local_now() + 10s;
    while (count_ < count && local_now() < end) std::this_thread::yield();
    return count_ >= count;
  }

 private:
  std::atomic<std::thread::id> on_;
  std::atomic<int> count_{0};
};

inline Answer contend(Store& store, const Claim& claim) {
  return store.contend({&claim, 1}, soon()).at(0);
}
// The answer to one claim that must be an observation.
inline Observation observed(const Answer& answer) {
  if (const auto* error = std::get_if<Error>(&answer)) throw *error;
  return std::get<Observation>(answer);
}
inline Observation take(Store& store, std::string_view mutex, std::string_view wire_id,
                        Token floor = 0) {
  return observed(contend(store, {mutex, wire_id, 0, floor, 10s, 6s}));
}
inline Observation renew(Store& store, std::string_view mutex, std::string_view wire_id,
                         Token token) {
  return observed(contend(store, {mutex, wire_id, token, 0, 10s, 6s}));
}
inline void release(Store& store, std::string_view mutex, std::string_view wire_id,
                    Token token = 0) {
  const Claim claim{mutex, wire_id, token, 0, 10s, 6s};
  observed(store.release({&claim, 1}, soon()).at(0));
}
inline Observation observe(Store& store, std::string_view mutex) {
  return observed(store.observe({&mutex, 1}, soon()).at(0));
}

// The error a call throws, as "code: text"; "none".
std::string error_of(const std::function<void()>& call);
// Runs `body` in a forked child and returns what it returned, or "died".
std::string in_child(const std::function<std::string()>& body);
// The same as somebody who is not root, in a directory that is theirs.
std::string as_ordinary_user(const std::filesystem::path& directory,
                             const std::function<std::string()>& body);

// A forked child that runs until it is killed or its body returns.
class Child {
 public:
  explicit Child(const std::function<void()>& body);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();
  void kill();
  int join();  // the exit status; -1: it died

 private:
  pid_t pid_;
};

// One process writes a byte, another waits for it.
class Signal {
 public:
  Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal();
  void give() const;
  void wait() const;

 private:
  int ends_[2];
};

}  // namespace simba::sqlite
