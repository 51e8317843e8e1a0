// How a service ends: stopped, closed, destroyed, abandoned, forked.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/contend_service_fixture.h"
#include "simba/locker.h"
#include "testing/fake_executor.h"

namespace simba {
namespace {

// Runs out in three seconds, and a machine that stands still for two does not cost it.
ContendOptions short_lease() {
  ContendOptions options;
  options.ttl = 2s;
  options.transition = 1s;
  options.jitter = {0ms, 20ms};
  options.renew_at = 0.1;
  return options;
}

TEST_F(ContendServiceTest, WorkThatIgnoresTheStopIsAbandoned) {
  std::atomic<bool> go_on{false};
  on_acquired = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  MutexContendService service(client, contender, short_lease());
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  EXPECT_FALSE(service.stop(20ms));
  EXPECT_EQ(service.status(), Status::kInitial);
  EXPECT_EQ(term.loss().reason, LossReason::kAbandoned);
  EXPECT_TRUE(term.lost().stop_requested());
  EXPECT_EQ(store->releases(), 0u);
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
  EXPECT_FALSE(term.is_owner());
  go_on = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
}

// The verdict is about this stop(), not about one before it.
TEST_F(ContendServiceTest, AStopAfterAnAbandonedTermIsTrueAgain) {
  std::atomic<bool> go_on{false};
  on_acquired = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  MutexContendService service(client, contender);
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_FALSE(service.stop(20ms));
  go_on = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  service.start();  // waits: the abandoned lease still runs
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kRunning; }));
  EXPECT_TRUE(service.stop(20s)) << "nothing was abandoned this time";
}

// Also when the term was lost before, and there is nothing to release.
TEST_F(ContendServiceTest, AStopThatWorkOutlivesIsFalseWhateverEndedTheTerm) {
  std::atomic<bool> go_on{false};
  on_acquired = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  MutexContendService service(client, contender, soon_renewed());
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  client.evict("m", term.wire_id(), term.token());
  ASSERT_TRUE(eventually([&] { return term.lost().stop_requested(); }));
  EXPECT_FALSE(service.stop(20ms)) << "its work still runs";
  go_on = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
}

// A client in virtual time.
class EndlessTimeTest : public ContendServiceTest {
 protected:
  const std::shared_ptr<testing::FakeExecutor> executor = std::make_shared<testing::FakeExecutor>();
  Client own{make_memory(executor->store_clock()), [this] {
               ClientOptions options = with(long_lease());
               options.executor = executor;
               return options;
             }()};
};

TEST_F(EndlessTimeTest, TheOldWorkOfAnAbandonedTermNeverOverlapsTheNew) {
  MutexContendService service(own, contender);
  int inside = 0, worst = 0;
  on_acquired = [&](const MutexState& state) {
    worst = std::max(worst, ++inside);
    if (heard().size() == 1) {  // the old work goes on for hours
      service.stop(20ms);
      executor->advance(1h);
      EXPECT_EQ(state.term.loss().reason, LossReason::kAbandoned);
      service.start();
      executor->advance(1h);
      EXPECT_TRUE(service.is_owner()) << "it was not to own before its old work is done";
    }
    --inside;
  };
  service.start();
  executor->advance(1s);
  EXPECT_EQ(heard(), (Words{"acquired", "released", "acquired"}));
  EXPECT_EQ(worst, 1);
}

// It contends no more.
TEST_F(EndlessTimeTest, AServiceThatWasDestroyedInOnReleasedIsOver) {
  auto service = std::make_unique<MutexContendService>(own, contender);
  on_released = [&](const MutexState&) { service.reset(); };
  service->start();
  executor->run();
  ASSERT_EQ(heard(), Words{"acquired"});
  const Term term = service->term();
  own.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow);
  executor->advance(1h);
  EXPECT_EQ(service, nullptr);
  EXPECT_EQ(heard(), (Words{"acquired", "released"}));
  EXPECT_TRUE(own.observe("m").is_free());
}

TEST_F(ContendServiceTest, StopInACallbackReturnsAtOnce) {
  MutexContendService service(client, contender);
  on_acquired = [&](const MutexState&) {
    service.stop();
    EXPECT_EQ(heard(), Words{"acquired"});
  };
  service.start();
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kInitial; }));
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, StopInOnReleasedOfALostTermIsLegal) {
  MutexContendService service(client, contender, soon_renewed());
  on_released = [&](const MutexState&) { service.stop(); };
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow);
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kInitial; }));
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, AServiceMayBeDestroyedInOnAcquired) {
  auto service = std::make_unique<MutexContendService>(client, contender);
  on_acquired = [&](const MutexState&) { service.reset(); };
  service->start();
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
}

TEST_F(ContendServiceTest, AServiceMayBeDestroyedInOnReleased) {
  auto service = std::make_unique<MutexContendService>(client, contender, soon_renewed());
  std::atomic<bool> gone{false};
  on_released = [&](const MutexState&) {
    service.reset();
    gone = true;
  };
  service->start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service->term();
  client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow);
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
}

TEST_F(ContendServiceTest, TheLastHandleMayGoInACallback) {
  auto own = std::make_unique<Client>(store, with(long_lease()));
  auto service = std::make_unique<MutexContendService>(*own, contender);
  own.reset();
  on_acquired = [&](const MutexState&) { service.reset(); };
  service->start();
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
}

// stop() in a callback returns at once; whoever destroys the service afterwards, elsewhere, must
// not find the callback still using what it destroys next.
TEST_F(ContendServiceTest, TheDestructorWaitsForAStopThatIsUnderWay) {
  std::atomic<bool> stopping{false}, over{false};
  auto service = std::make_unique<MutexContendService>(client, contender);
  on_acquired = [&](const MutexState&) {
    service->stop();
    stopping = true;
    std::this_thread::sleep_for(200ms);
  };
  on_released = [&](const MutexState&) { over = true; };
  service->start();
  ASSERT_TRUE(eventually([&] { return stopping.load(); }));
  service.reset();
  EXPECT_TRUE(over) << "a callback outlived the service";
  EXPECT_TRUE(eventually([&] { return over.load(); }));
}

TEST_F(ContendServiceTest, NoNoticeComesAfterStopHasReturned) {
  struct Slow : MutexContender {
    using MutexContender::MutexContender;
    void notify_owner(const MutexState&) override {
      ++begun;
      std::this_thread::sleep_for(200ms);
      ++ended;
    }
    std::atomic<int> begun{0}, ended{0};
  };
  take("x");
  const auto slow = std::make_shared<Slow>("m");
  MutexContendService service(client, slow);
  service.start();
  ASSERT_TRUE(eventually([&] { return slow->begun == 1; }));
  service.stop();
  EXPECT_EQ(slow->ended, slow->begun) << "stopped, and still in a callback";
  const int begun = slow->begun;
  MutexContendService witness(client, contender);  // who would be told at the same time
  release("x");
  witness.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  witness.stop();
  EXPECT_EQ(slow->begun, begun) << "told after stop()";
}

TEST_F(ContendServiceTest, CloseIsQuietInEveryState) {
  MutexContendService service(client, contender);
  service.close();
  service.start();
  service.close();
  service.close();
  EXPECT_EQ(service.status(), Status::kInitial);
  service.start();
  EXPECT_TRUE(eventually([&] { return service.is_owner(); }));
  service.close();
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, StopTellsByACodeToo) {
  MutexContendService service(client, contender);
  std::error_code error;
  EXPECT_FALSE(service.stop(error));
  EXPECT_EQ(error, Errc::kMisuse);
  service.start();
  EXPECT_TRUE(service.stop(error));
  EXPECT_FALSE(error) << error.message();
  EXPECT_FALSE(service.stop(20s, error));
  EXPECT_EQ(error, Errc::kMisuse);
  service.start();
  EXPECT_TRUE(service.stop(20s, error));
  EXPECT_FALSE(error) << error.message();
}

TEST_F(ContendServiceTest, StopFromManyThreadsHappensOnce) {
  MutexContendService service(client, contender);
  for (int round = 0; round < 20; ++round) {
    service.start();
    std::atomic<int> stopped{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          service.stop();
          ++stopped;
        } catch (const Error& error) {
          EXPECT_EQ(error.errc(), Errc::kMisuse);
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(stopped, 1);
    EXPECT_EQ(refused, 3);
    EXPECT_EQ(service.status(), Status::kInitial);
  }
}

// No lock of ours is held where user code runs: another thread may do there what it likes.
TEST_F(ContendServiceTest, AHookMayCallTheServiceThatItHearsOf) {
  std::unique_ptr<MutexContendService> service;
  Words refusals;
  std::atomic<bool> refused{false}, closed{false};
  std::thread other;
  ClientOptions options = with(long_lease());
  options.on_event = [&](const Event& event) {
    if (event.kind != Event::Kind::kReleased) return;
    other = std::thread([&] {
      refusals.push_back(misuse_of([&] { service->start(); }));
      refusals.push_back(misuse_of([&] { service->stop(); }));
      refused = true;
      service->close();
      closed = true;
    });
    EXPECT_TRUE(eventually([&] { return closed.load(); })) << "it waits for a lock of ours";
  };
  on_released = [&](const MutexState&) { eventually([&] { return refused.load(); }); };
  const Client hooked(store, options);
  service = std::make_unique<MutexContendService>(hooked, contender);
  service->start();
  EXPECT_TRUE(waits_for({"acquired"}));
  service->stop();
  other.join();
  EXPECT_EQ(refusals, (Words{"cannot start the service of 'm' while it is STOPPING",
                             "cannot stop the service of 'm' while it is STOPPING"}));
  EXPECT_EQ(service->status(), Status::kInitial);
}

// As if other threads came in between where the store is asked for hints.
TEST_F(ContendServiceTest, AStopWhileAnotherThreadIsInStartEndsThatLifeAlone) {
  struct Watched : FaultyStore {
    using FaultyStore::FaultyStore;
    std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                                 std::function<void()> wake) override {
      if (const auto now = std::exchange(meanwhile, nullptr)) now();
      return FaultyStore::watch(mutex, wire_id, std::move(wake));
    }
    std::function<void()> meanwhile;
  };
  const auto watched = std::make_shared<Watched>(rows);
  MutexContendService service(Client(watched, with(long_lease())), contender);
  watched->meanwhile = [&] {
    EXPECT_EQ(service.status(), Status::kStarting);
    EXPECT_NE(misuse_of([&] { service.start(); }), "none");
    service.stop();
    EXPECT_EQ(service.status(), Status::kInitial);
  };
  service.start();
  EXPECT_EQ(service.status(), Status::kInitial);
  EXPECT_EQ(watched->calls(), 0u);
  watched->meanwhile = [&] {
    service.stop();
    service.start();
  };
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  service.stop();
  EXPECT_EQ(heard(), (Words{"acquired", "released"}));
}

// P4: whatever a callback is doing.
TEST_F(ContendServiceTest, AHookThatBlocksDoesNotHoldUpTheEndOfAnotherTerm) {
  std::atomic<bool> blocks{false}, go_on{false};
  ClientOptions options = with(short_lease());
  options.on_event = [&](const Event& event) {
    if (event.kind != Event::Kind::kRevoked) return;
    blocks = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  const Client hooked(store, options);
  ContendOptions longer = short_lease();
  longer.ttl = 3s;
  SimbaLocker first(hooked, "first"), second(hooked, "second", longer);
  first.lock();
  second.lock();
  store->go_down();
  EXPECT_TRUE(eventually([&] { return blocks.load(); }));
  EXPECT_TRUE(eventually([&] { return second.lost().stop_requested(); }));
  go_on = true;
  store->heal();
}

TEST_F(ContendServiceTest, AHungStoreDoesNotHoldUpTheEndOfATerm) {
  struct Hanging : FaultyStore {
    using FaultyStore::FaultyStore;
    std::atomic<bool> hang{false};
    Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
      while (hang) std::this_thread::sleep_for(1ms);
      return FaultyStore::contend(claims, deadline);
    }
  };
  const auto hanging = std::make_shared<Hanging>(rows);
  const Client own(hanging, with(short_lease()));
  MutexContendService service(own, contender);
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  hanging->hang = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_FALSE(term.is_owner());
  const LossReason reason = term.loss().reason;
  EXPECT_TRUE(reason == LossReason::kUnreachable ||
              reason == LossReason::kClockJump)  // this machine stood still meanwhile
      << to_string(reason);
  EXPECT_TRUE(term.lost().stop_requested());
  hanging->hang = false;
  service.stop();
}

TEST_F(ContendServiceTest, AForkedChildOwnsNothingAndItsDestructorsDoNotHang) {
  auto own = std::make_unique<Client>(store, with(long_lease()));
  auto service = std::make_unique<MutexContendService>(*own, contender);
  on_acquired = [](const MutexState& state) {
    while (!state.term.lost().stop_requested()) std::this_thread::sleep_for(1ms);
  };
  service->start();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_EQ(in_child([&] {
              if (service->is_owner() || service->is_in_ttl() || service->term()) return 1;
              service->close();
              service.reset();
              own.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(service->is_owner());
  service->stop();
  EXPECT_EQ(heard(), (Words{"acquired", "released"}));
}

// Supervisors start it again as soon as it may: the stop that ended the last life returns.
TEST_F(ContendServiceTest, AStopReturnsAlsoWhenSomebodyStartsTheNextLifeAtOnce) {
  MutexContendService service(client, contender);
  std::atomic<bool> is_done{false};
  std::atomic<int> starts{0};
  const auto supervise = [&] {
    while (!is_done) {
      if (service.status() != Status::kInitial) continue;
      try {
        service.start();
        ++starts;
      } catch (const Error&) {
        continue;  // another one was faster
      }
    }
  };
  // More of them than processors, so that they are often before the one who waits.
  std::vector<std::thread> supervisors;
  for (int i = 0; i < 4; ++i) supervisors.emplace_back(supervise);
  for (int round = 1; round <= 50; ++round) {
    ASSERT_TRUE(eventually([&] { return starts >= round; }));
    service.stop();
  }
  is_done = true;
  for (std::thread& supervisor : supervisors) supervisor.join();
}

}  // namespace
}  // namespace simba
