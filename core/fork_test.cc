// A forked child owns nothing: every handle says so or is dead, makes no call, and harms nobody.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "core/api_fixture.h"
#include "simba/async.h"
#include "simba/locker.h"
#include "simba/scheduler.h"
#include "testing/fake_executor.h"

namespace simba {
namespace {

// Counts without a lock: a thread of the parent may hold that of the faulty store at the fork.
class CountedStore : public FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    ++made;
    return FaultyStore::contend(claims, deadline);
  }
  Answers release(std::span<const Claim> claims, LocalTime deadline) override {
    ++made;
    return FaultyStore::release(claims, deadline);
  }
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override {
    ++made;
    return FaultyStore::observe(mutexes, deadline);
  }
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override {
    ++made;
    return FaultyStore::list(prefix, after, limit, deadline);
  }
  std::atomic<int> made{0};
};

class ForkTest : public ApiTest {
 protected:
  const std::shared_ptr<CountedStore> counted = std::make_shared<CountedStore>(rows);
  std::unique_ptr<Client> client = std::make_unique<Client>(counted, with(long_lease()));
  int failed = 0;  // the child's

  // What `body` checks in the child, and that it made no call. The child ends after it let the
  // client go too.
  void expect_in_child(const std::function<void()>& body) {
    EXPECT_EQ(in_child([&] {
                const int before = counted->made;
                body();
                client.reset();
                check(counted->made == before);
                return failed;
              }),
              0)
        << "the number of the check that failed; above 1000: it crashed or hung";
  }
  // A failure in the child is a number: what it prints may be lost.
  void check(bool is_true) {
    ++checks_;
    if (!is_true && failed == 0) failed = checks_;
  }
  void check_refused(const std::function<void()>& call) {
    try {
      call();
      check(false);
    } catch (const Error& error) {
      check(error.errc() == Errc::kMisuse &&
            std::string(error.what()).find("forked") != std::string::npos);
    }
  }

 private:
  int checks_ = 0;
};

TEST_F(ForkTest, AClientMakesNoCall) {
  take("holder");
  expect_in_child([&] {
    check_refused([&] { client->observe("m"); });
    check_refused([&] { client->list(); });
    check_refused([&] { client->evict("m", "holder", 1); });
    check_refused([&] { client->store(); });
    check_refused([&] { const SimbaLocker locker(*client, "m"); });
    check_refused([&] { acquire_async(*client, "m", {}, [](const Acquired&) {}); });
    std::error_code error;
    client->observe("m", 1s, error);
    check(error == Errc::kMisuse);
  });
  EXPECT_EQ(client->observe("m").owner.id, "holder");
}

TEST_F(ForkTest, AHeldMutexIsHeldInTheParentOnly) {
  std::promise<HeldMutex> promise;
  acquire_async(*client, "m", {},
                [&](Acquired acquired) { promise.set_value(std::move(acquired.held)); });
  HeldMutex held = promise.get_future().get();
  const Term term = held.term();
  expect_in_child([&] {
    check(!held.is_in_ttl());
    check(!held.term());
    check(!term.is_in_ttl() && !term.is_owner() && term.lost().stop_requested());
    held.release();
    check(!held);
    held = HeldMutex();
  });
  EXPECT_TRUE(held.is_in_ttl());
  EXPECT_EQ(row().owner.id, term.wire_id());
  held.release();
  EXPECT_TRUE(eventually([&] { return is_free(); }));
}

TEST_F(ForkTest, AWishIsCancelledInTheParentOnly) {
  take("holder");
  std::stop_source stop;
  AcquireOptions options;
  options.stop = stop.get_token();
  std::atomic<int> heard{0};
  std::atomic<bool> is_held{false};
  auto pending =
      std::make_unique<PendingAcquire>(acquire_async(*client, "m", options, [&](Acquired acquired) {
        is_held = acquired.held.is_in_ttl();
        ++heard;
      }));
  EXPECT_TRUE(eventually([&] { return counted->watches() > 0; }));
  expect_in_child([&] {
    pending->cancel();
    stop.request_stop();
    pending.reset();
    stop = std::stop_source();
    check(heard == 0);
  });
  EXPECT_EQ(heard, 0);
  release("holder");
  EXPECT_TRUE(eventually([&] { return heard == 1; }));
  EXPECT_TRUE(is_held);
}

TEST_F(ForkTest, AScheduleGoesOnInTheParentOnly) {
  auto scheduler =
      std::make_unique<Scheduler>(*client, "m", ScheduleConfig::rate(0ms, 1ms), [](const Term&) {});
  scheduler->start();
  EXPECT_TRUE(eventually([&] { return scheduler->runs() > 2; }));
  expect_in_child([&] {
    const std::uint64_t runs = scheduler->runs();
    check(!scheduler->is_owner());
    check_refused([&] { scheduler->start(); });
    check_refused([&] { scheduler->stop(); });
    check_refused([&] { scheduler->status(); });
    check(scheduler->runs() == runs);
    scheduler.reset();
  });
  const std::uint64_t runs = scheduler->runs();
  EXPECT_TRUE(eventually([&] { return scheduler->runs() > runs + 2; }));
  EXPECT_TRUE(scheduler->is_owner());
  EXPECT_TRUE(scheduler->stop());
  EXPECT_TRUE(is_free());
}

TEST_F(ForkTest, AnObserverSeesInTheParentOnly) {
  take("holder");
  auto service = std::make_unique<MutexRetrievalService>(*client, make_contender("m", {}),
                                                         client->options().contend);
  service->start();
  EXPECT_TRUE(eventually([&] { return service->after_owner().id == "holder"; }));
  expect_in_child([&] {
    check_refused([&] { service->start(); });
    check_refused([&] { service->stop(); });
    check_refused([&] { service->status(); });
    check_refused([&] { service->mutex_state(); });
    service->close();
    service.reset();
  });
  EXPECT_TRUE(service->running());
  release("holder");
  EXPECT_TRUE(eventually([&] { return !service->has_owner(); }));
}

// Forks where the engine asks it something.
class ForkingExecutor : public testing::FakeExecutor {
 public:
  void set_alarm(LocalTime at) override {
    FakeExecutor::set_alarm(at);
    if (const auto once = std::exchange(then, nullptr)) once();
  }
  std::function<void()> then;
};

// At the fork a thread of the parent is in start(), and holds the locks on the way.
TEST_F(ForkTest, AServiceTakesNoLockInTheChild) {
  ClientOptions options = with(long_lease());
  const auto executor = std::make_shared<ForkingExecutor>();
  options.executor = executor;
  client = std::make_unique<Client>(counted, options);
  auto service = std::make_unique<MutexContendService>(*client, make_contender("m", {}));
  bool has_forked = false;
  executor->then = [&] {
    expect_in_child([&] {
      check_refused([&] { service->start(); });
      check_refused([&] { service->stop(); });
      service.reset();
    });
    has_forked = true;
  };
  service->start();
  EXPECT_TRUE(has_forked);
  executor->run();
  EXPECT_TRUE(service->is_owner());
}

}  // namespace
}  // namespace simba
