#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "simba/log.h"
#include "simba/store.h"
#include "stores/kit/worker.h"

// What the tests of stores with a server share: claims in a word, a log to look into, contenders.
namespace simba::kit::fixture {

using namespace std::chrono_literals;

inline LocalTime soon() { return BootClock::now() + 30s; }
bool eventually(const std::function<bool()>& done, milliseconds patience = 45s);
// The error a call throws, as "code: text"; "none".
std::string error_of(const std::function<void()>& call);

// The lines of a log.
//
// Threads: any.
class Lines {
 public:
  LogSink sink() const;
  std::vector<std::string> all() const;
  std::size_t count(const std::string& part) const;

 private:
  struct Kept {
    std::mutex guard;
    std::vector<std::string> lines;  // guarded by guard
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

// The answer to one claim.
Answer contend(Store& store, const Claim& claim, LocalTime deadline = soon());
Observation observed(const Answer& answer);
Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor = 0);
Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  milliseconds ttl = 10s, milliseconds transition = 6s);
void release(Store& store, std::string_view mutex, std::string_view wire_id, Token token = 0);
Observation observe(Store& store, std::string_view mutex);
// For a~1, without trouble.
bool can_take(Store& store, std::string_view mutex = "report");

// A store that nobody else has: dead in a forked child, which does no harm to the parent's.
void expect_fork_safe(std::shared_ptr<Store> store);

// A contender on a mutex with a short lease, and how often it got and lost it.
class Contender {
 public:
  Contender(const Client& client, const std::string& mutex, const ContendOptions& options);
  ~Contender();
  bool is_owner() const { return service_->is_owner(); }
  bool is_in_ttl() const { return service_->is_in_ttl(); }
  Token token() const { return service_->term().token(); }
  nanoseconds time_left() const { return service_->term().time_left(); }
  int acquired() const { return counts_->acquired; }
  int released() const { return counts_->released; }
  // False: no renewal came. True: one did, and it was of the term that runs now.
  bool is_renewed() const;
  void stop() { service_->stop(); }

 private:
  struct Counts {
    std::atomic<int> acquired{0}, released{0};
  };
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::unique_ptr<MutexContendService> service_;
};

// A contender on "report" with a short lease that meets trouble, and what its calls were told.
class Afflicted {
 public:
  explicit Afflicted(std::shared_ptr<Store> store);
  // One of its calls failed with this in the error, which begins with the kind of trouble.
  bool was_told(const std::string& part) const { return errors_.count(part) > 0; }
  // Its log says so: also of what is wrong with its mutex alone, which fails no call.
  bool was_logged(const std::string& part) const { return log_.count(part) > 0; }
  bool is_owner() const { return contender_.is_owner(); }
  // It was owner, and the store is out of its reach from now on: it is believed no longer than its
  // last renewal lasts, and the log says what to do. `again` is called until then: what cuts
  // connections does not see those that are on their way.
  void expect_end(
      const std::string& advice, const std::function<void()>& again = [] {}) const;

 private:
  const Lines errors_, log_;
  // When it got the lease that it has: later than that was counted from, by what the event took.
  const std::shared_ptr<std::atomic<LocalTime>> renewed_ =
      std::make_shared<std::atomic<LocalTime>>();
  const Client client_;
  const Contender contender_;
};
// Long enough for a machine on which everybody waits for everybody.
inline constexpr milliseconds kLongPatience = 45s;

ContendOptions lease(milliseconds ttl, milliseconds transition);
ContendOptions short_lease();  // 2 s and 1 s
// 20 s and 10 s, renewed every second: no busy machine loses it by accident.
ContendOptions steady_lease();

// Two contenders of two "processes"; looks all the time whether both believe to be in their TTL.
class Rivals {
 public:
  Rivals(std::shared_ptr<Store> first, std::shared_ptr<Store> second)
      : clients_{Client(std::move(first)), Client(std::move(second))},
        contenders_{Contender(clients_[0], "report", short_lease()),
                    Contender(clients_[1], "report", short_lease())},
        witness_([this](const std::stop_token& stop) {
          const StopSignal moment;
          while (!stop.stop_requested()) {
            if (are_both()) ++both_;
            moment.pause(200us);
          }
        }) {}

  bool somebody_owns() const { return contenders_[0].is_owner() || contenders_[1].is_owner(); }
  Token token() const { return std::max(contenders_[0].token(), contenders_[1].token()); }
  int both() const { return both_; }
  int acquired() const { return contenders_[0].acquired() + contenders_[1].acquired(); }

 private:
  // One term of the first began before and ended after the other one was asked: the answers are not
  // of one moment, and a thread may stand still between them.
  bool are_both() const {
    const Token term = contenders_[0].token();
    return contenders_[0].is_in_ttl() && contenders_[1].is_in_ttl() && contenders_[0].is_in_ttl() &&
           contenders_[0].token() == term;
  }

  std::array<Client, 2> clients_;
  std::array<Contender, 2> contenders_;
  std::atomic<int> both_{0};
  std::jthread witness_;
};

}  // namespace simba::kit::fixture
