#include <thread>

#include "simba/scheduler.h"
#include "testing/contract_engine.h"

// Work that runs on the leader only: the fifth case of the original's suite, and bugs eleven and
// twelve of its history.
namespace simba::testing {

void link_scheduler_cases() {}

namespace {

class SchedulerContract : public EngineContract {
 protected:
  std::atomic<int> running{0}, runs{0};

  // Work that checks that it is alone.
  Scheduler::Work alone(milliseconds lasts = 1ms) {
    return [this, lasts](const Term&) {
      recorder.expect(running.fetch_add(1) == 0, "two runs at a time");
      ++runs;
      std::this_thread::sleep_for(lasts);
      running.fetch_sub(1);
    };
  }
};

SIMBA_CASE(SchedulerContract, Schedule) {
  Scheduler scheduler(client(), name(), ScheduleConfig::rate(0ms, 20ms), alone(), long_lease());
  EXPECT_EQ(scheduler.status(), Status::kInitial);
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() >= 5; }));
  EXPECT_TRUE(scheduler.is_owner());
  EXPECT_TRUE(scheduler.stop());
  EXPECT_EQ(scheduler.status(), Status::kInitial);
  EXPECT_EQ(scheduler.failures(), 0u);
  expect_left_free(name());
}

SIMBA_CASE(SchedulerContract, OnlyTheLeaderRunsAndTheNextOneGoesOn) {
  Scheduler first(client(), name(), ScheduleConfig::delay(0ms, 5ms), alone(), long_lease());
  Scheduler second(client(), name(), ScheduleConfig::delay(0ms, 5ms), alone(), long_lease());
  first.start();
  ASSERT_TRUE(eventually([&] { return first.runs() >= 3; }));
  second.start();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(second.runs(), 0u);
  first.stop();
  EXPECT_TRUE(eventually([&] { return second.runs() >= 3; }));
  second.stop();
}

SIMBA_CASE(SchedulerContract,
           Original11LeadershipIsGivenUpOnlyAfterTheWorkAndRestartsNeverOverlap) {
  const Client one = client();
  std::atomic<bool> is_running{false};
  Scheduler scheduler(
      one, name(), ScheduleConfig::rate(0ms, 1ms),
      [&](const Term& term) {
        recorder.expect(running.fetch_add(1) == 0, "old and new work together");
        is_running = true;
        while (!term.lost().stop_requested()) std::this_thread::sleep_for(1ms);
        for (int i = 0; i < 10; ++i) {  // it takes its time to return
          std::this_thread::sleep_for(10ms);
          recorder.guard([&] {
            recorder.expect(owns(observe(*store, name()), term.wire_id()),
                            "released before the work had stopped");
          });
        }
        is_running = false;
        running.fetch_sub(1);
      },
      long_lease());
  for (int round = 0; round < 3; ++round) {
    scheduler.start();
    ASSERT_TRUE(eventually([&] { return is_running.load(); }));
    EXPECT_TRUE(scheduler.stop(20s));
    EXPECT_FALSE(is_running) << "stopped, and still at work";
    EXPECT_TRUE(observe(*store, name()).is_free());
  }
}

SIMBA_CASE(SchedulerContract, Original12StopEndsTheNewestTaskToo) {
  Scheduler scheduler(client(), name(), ScheduleConfig::rate(0ms, 1ms), alone(0ms), calm());
  for (int round = 0; round < 15; ++round) {
    scheduler.start();
    if (round % 3 != 0) {
      const std::uint64_t before = scheduler.runs();
      ASSERT_TRUE(eventually([&] { return scheduler.runs() > before; }));
    }
    scheduler.stop();
    const std::uint64_t after = scheduler.runs();
    std::this_thread::sleep_for(30ms);
    ASSERT_EQ(scheduler.runs(), after) << "a task outlived stop()";
  }
}

SIMBA_CASE(SchedulerContract, AnEvictedLeadersWorkIsToldToStopAndGoesOnElsewhere) {
  std::atomic<bool> told{false};
  const auto until_lost_work = [&](const Term& term) {
    recorder.expect(running.fetch_add(1) == 0, "two runs at a time");
    ++runs;
    while (!term.lost().stop_requested()) std::this_thread::sleep_for(1ms);
    running.fetch_sub(1);
    told = true;
  };
  ContendOptions options = calm();
  options.ttl = 4s;  // it is still its own when it is evicted
  options.renew_at = 0.1;
  Scheduler scheduler(client(), name(), ScheduleConfig::delay(0ms, 1ms), until_lost_work, options);
  scheduler.start();
  ASSERT_TRUE(eventually([&] { return runs == 1; }));
  const Observation held = observe(*store, name());
  store->evict(name(), held.owner.id, held.owner.token, Eviction::kKeepLease, soon());
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_TRUE(eventually([&] { return runs == 2; })) << "it contends again";
  EXPECT_GT(observe(*store, name()).owner.token, held.owner.token);
  EXPECT_TRUE(scheduler.stop(20s));
}

}  // namespace
}  // namespace simba::testing
