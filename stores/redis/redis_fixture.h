#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "simba/redis.h"
#include "stores/redis/connection.h"
#include "testing/servers/redis.h"
#include "testing/servers/shared.h"

// What the tests of this store share: a server, somebody who administers it, and names nobody else
// uses.
namespace simba::redis {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

inline LocalTime soon(milliseconds patience = 30s) { return BootClock::now() + patience; }
// A connection that was not used for longer is looked at before it is used.
inline constexpr milliseconds kPastRest{30};
bool eventually(const std::function<bool()>& done, milliseconds patience = 45s);
// The error a call throws, as "code: text"; "none".
std::string error_of(const std::function<void()>& call);

// A connection that speaks commands.
//
// Threads: one.
class Admin {
 public:
  explicit Admin(const std::string& url);
  Reply ask(const std::vector<std::string>& words);
  // The same as text: numbers as digits, lists with '|' in between, nil as "nil".
  std::string operator()(const std::vector<std::string>& words);
  // One line of INFO, as a number.
  std::int64_t info(const std::string& name);
  void subscribe(const std::vector<std::string>& channels);
  // The next message, of this channel or of any; "none" when patience ends.
  std::string message(const std::string& channel = {}, milliseconds patience = 45s);

 private:
  std::unique_ptr<Connection> connection_;
  Replies messages_;
};

// The lines of a log.
//
// Threads: any.
class Lines {
 public:
  LogSink sink();
  std::size_t count(const std::string& part) const;
  std::string all() const;

 private:
  struct Kept {
    std::mutex guard;
    std::vector<std::string> lines;  // guarded by guard
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

Observation observed(const Answer& answer);
Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor = 0,
                 milliseconds ttl = 20s, milliseconds transition = 10s,
                 LocalTime deadline = soon());
Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  milliseconds ttl = 20s, milliseconds transition = 10s,
                  LocalTime deadline = soon());
void release(Store& store, std::string_view mutex, std::string_view wire_id);
Observation observe(Store& store, std::string_view mutex, LocalTime deadline = soon());

// A watch that counts its hints.
class Hints {
 public:
  Hints(Store& store, std::string_view mutex);
  int count() const { return *count_; }
  // Heard of the mutex, and of what happened before.
  bool awaits_live() const;

 private:
  const std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
  const std::unique_ptr<Watch> watch_;
};

// Mutex names of its own on the server of SIMBA_TEST_REDIS_URL, else on one that all tests share.
class RedisTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string url(const std::string& more = {}) const { return server_->url(more); }
  // Each has connections of its own, as a process would, unless it is given a name.
  std::shared_ptr<Store> open(const std::string& more = {});
  Admin& admin() { return *admin_; }
  // One connection of that client, "normal" or "pubsub"; neighbours on the server keep theirs.
  void kill_client(const std::string& name, const std::string& type);
  std::string key(const std::string& suffix = {}) const { return "simba:{" + m + "}" + suffix; }

  std::string m;  // a mutex
  Lines log;

 private:
  std::unique_ptr<servers::TestServer> server_;
  std::unique_ptr<Admin> admin_;
};

// Servers that a case starts, kills and leads astray itself.
class OwnServersTest : public ::testing::Test {
 protected:
  static constexpr const char* kUnguarded = "restart-guard=off";

  void SetUp() override;
  std::shared_ptr<Store> open(const std::string& url);

  const std::string m = "m";
  Lines log;
};

// Whether a call ends because a replica is missing, before its deadline, and says this too. Where a
// busy machine missed that moment, it is asked again with more time.
bool lacks_a_replica(const std::function<void(LocalTime deadline)>& call,
                     const std::string& and_says = {});

// Opens the store of a URL, with connections of its own.
std::shared_ptr<Store> open_alone(const std::string& url, const LogSink& log = {});

// A contender on a mutex, and how often it got and lost it.
class Contender {
 public:
  Contender(const Client& client, const std::string& mutex, const ContendOptions& options);
  ~Contender();
  bool is_owner() const { return service_->is_owner(); }
  bool is_in_ttl() const { return service_->is_in_ttl(); }
  Token token() const { return service_->term().token(); }
  std::string wire_id() const { return std::string(service_->term().wire_id()); }
  int acquired() const { return counts_->acquired; }
  int released() const { return counts_->released; }
  bool is_running() const { return service_->status() == Status::kRunning; }
  void stop() { service_->stop(); }

 private:
  struct Counts {
    std::atomic<int> acquired{0}, released{0};
  };
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::unique_ptr<MutexContendService> service_;
};

ContendOptions lease(milliseconds ttl, milliseconds transition);

}  // namespace simba::redis
