#include "simba/scheduler.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/api_fixture.h"

namespace simba {
namespace {

ContendOptions short_lease() {
  ContendOptions options = long_lease();
  options.ttl = 600ms;
  options.transition = 600ms;
  options.grace.reset();
  return options;
}

class SchedulerTest : public ApiTest {
 protected:
  Client client{store};
};

TEST_F(SchedulerTest, RunsAtAFixedRate) {
  std::mutex guard;
  std::vector<LocalTime> begun;
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 50ms),
      [&](const Term& term) {
        EXPECT_TRUE(term.is_in_ttl());
        EXPECT_NE(term.token(), 0u);
        const std::lock_guard lock(guard);
        begun.push_back(BootClock::now());
      },
      long_lease());
  EXPECT_EQ(scheduler.status(), Status::kInitial);
  const LocalTime started = BootClock::now();
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() >= 5; }));
  EXPECT_TRUE(scheduler.is_owner());
  EXPECT_TRUE(scheduler.stop());
  EXPECT_FALSE(scheduler.is_owner());
  EXPECT_EQ(begun.size(), scheduler.runs());
  EXPECT_GE(begun[4] - started, 200ms) << "not before its time";
  EXPECT_TRUE(row().is_free());
}

TEST_F(SchedulerTest, WaitsAPeriodAfterEachRun) {
  std::mutex guard;
  std::vector<std::pair<LocalTime, LocalTime>> runs;
  Scheduler scheduler(
      client, "m", ScheduleConfig::delay(0ms, 40ms),
      [&](const Term&) {
        const LocalTime began = BootClock::now();
        std::this_thread::sleep_for(30ms);
        const std::lock_guard lock(guard);
        runs.emplace_back(began, BootClock::now());
      },
      long_lease());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() >= 4; }));
  scheduler.stop();
  for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_GE(runs[i].first - runs[i - 1].second, 39ms);
  EXPECT_EQ(scheduler.missed(), 0u);
}

TEST_F(SchedulerTest, TheInitialDelayIsWaitedForAtEachAcquisition) {
  std::atomic<LocalTime> first{LocalTime{}};
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(150ms, 10ms),
      [&](const Term&) {
        if (first.load() == LocalTime{}) first = BootClock::now();
      },
      long_lease());
  for (int round = 1; round <= 2; ++round) {
    first = LocalTime{};
    const LocalTime began = BootClock::now();
    scheduler.start();
    EXPECT_TRUE(eventually([&] { return first.load() != LocalTime{}; }));
    scheduler.stop();
    EXPECT_GE(first.load() - began, 150ms) << "round " << round;
  }
}

TEST_F(SchedulerTest, AStopDuringTheInitialDelayIsPrompt) {
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(10min, 1s), [](const Term&) {}, long_lease());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.is_owner(); }));
  EXPECT_TRUE(scheduler.stop());
  EXPECT_EQ(scheduler.runs(), 0u);
}

TEST_F(SchedulerTest, MissedTicksAreSkippedAndCounted) {
  std::atomic<bool> slow{true};
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 20ms),
      [&](const Term&) {
        if (slow.exchange(false)) std::this_thread::sleep_for(150ms);
      },
      long_lease());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() >= 2; }));
  EXPECT_TRUE(eventually([&] { return scheduler.missed() >= 6; }));
  scheduler.stop();
}

TEST_F(SchedulerTest, AnExceptionDoesNotEndTheSchedule) {
  std::vector<std::string> lines;
  std::mutex guard;
  ClientOptions options;
  options.log = [&](LogLevel level, std::string_view line) {
    const std::lock_guard lock(guard);
    if (level == LogLevel::kError) lines.emplace_back(line);
  };
  const Client logging(store, options);
  std::atomic<int> runs{0};
  Scheduler scheduler(
      logging, "m", ScheduleConfig::rate(0ms, 5ms),
      [&](const Term&) {
        if (++runs == 1) throw std::runtime_error("on purpose");
        if (runs == 2) throw 2;
      },
      long_lease());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() >= 5; }));
  scheduler.stop();
  EXPECT_EQ(scheduler.failures(), 2u);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_NE(lines[0].find("on purpose"), std::string::npos);
}

TEST_F(SchedulerTest, AStopWaitsForTheRunningWorkAndOnlyThenReleases) {
  std::atomic<bool> at_work{false}, done{false};
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 1s),
      [&](const Term& term) {
        at_work = true;
        while (!term.lost().stop_requested()) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(100ms);
        EXPECT_EQ(row().owner.id, term.wire_id());
        done = true;
      },
      long_lease());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return at_work.load(); }));
  EXPECT_TRUE(scheduler.stop(20s));
  EXPECT_TRUE(done);
  EXPECT_TRUE(row().is_free());
}

TEST_F(SchedulerTest, AStopGivesUpOnWorkThatIgnoresIt) {
  std::atomic<bool> at_work{false}, go_on{false};
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 1s),
      [&](const Term&) {
        at_work = true;
        while (!go_on) std::this_thread::sleep_for(1ms);
      },
      short_lease());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return at_work.load(); }));
  EXPECT_FALSE(scheduler.stop(50ms));
  EXPECT_EQ(store->releases(), 0u) << "released under running work";
  EXPECT_TRUE(eventually([&] { return row().is_free(); })) << "the lease runs out";
  go_on = true;
}

TEST_F(SchedulerTest, RestartsNeverRunTwoAtATime) {
  std::atomic<int> inside{0}, worst{0};
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 1ms),
      [&](const Term&) {
        worst = std::max(worst.load(), ++inside);
        std::this_thread::sleep_for(2ms);
        --inside;
      },
      long_lease());
  for (int round = 0; round < 20; ++round) {
    scheduler.start();
    std::this_thread::sleep_for(milliseconds{round % 5});
    EXPECT_TRUE(scheduler.stop());
    EXPECT_EQ(inside, 0);
  }
  EXPECT_EQ(worst, 1);
}

// The next tick is due already: it must not run.
TEST_F(SchedulerTest, StopsInItsWork) {
  Scheduler* self = nullptr;
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 1ms),
      [&](const Term&) {
        std::this_thread::sleep_for(3ms);
        self->stop();
      },
      long_lease());
  self = &scheduler;
  for (std::uint64_t round = 1; round <= 50; ++round) {
    scheduler.start();
    EXPECT_TRUE(eventually([&] { return scheduler.runs() >= round; }));
    EXPECT_TRUE(eventually([&] { return scheduler.status() == Status::kInitial; }));
    EXPECT_TRUE(row().is_free());
    ASSERT_EQ(scheduler.runs(), round) << "it ran again after stop()";
    ASSERT_EQ(scheduler.failures(), 0u);
  }
}

TEST_F(SchedulerTest, MayBeDestroyedInItsWork) {
  std::unique_ptr<Scheduler> scheduler;
  std::atomic<bool> gone{false};
  scheduler = std::make_unique<Scheduler>(
      client, "m", ScheduleConfig::rate(0ms, 1ms),
      [&](const Term&) {
        scheduler.reset();
        gone = true;
      },
      long_lease());
  scheduler->start();
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
}

TEST_F(SchedulerTest, ALostLeadershipEndsTheRunsAndTheNextOneBeginsThemAgain) {
  std::atomic<Token> token{0};
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 2ms), [&](const Term& term) { token = term.token(); },
      soon_renewed());
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return token != 0; }));
  const Token first = token;
  client.evict("m", row().owner.id, first, Eviction::kFreeNow);
  EXPECT_TRUE(eventually([&] { return token > first; }));
  scheduler.stop();
}

// Between the end of the ttl and the end of ownership are four seconds: a run that began in the ttl
// may be late by as much.
TEST_F(SchedulerTest, NoRunBeginsOutsideTheTtl) {
  ContendOptions options = short_lease();
  options.ttl = 1s;
  options.transition = 5s;
  std::atomic<int> outside{0};
  std::mutex guard;
  Term last;  // guarded by guard
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 1ms),
      [&](const Term& term) {
        if (!term.is_owner()) ++outside;
        const std::lock_guard lock(guard);
        last = term;
      },
      options);
  const auto is_in_ttl = [&] {
    const std::lock_guard lock(guard);
    return last.is_in_ttl();
  };
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() > 10; }));
  store->go_down();
  EXPECT_TRUE(eventually([&] { return !is_in_ttl(); }));
  std::this_thread::sleep_for(50ms);
  const std::uint64_t runs = scheduler.runs();
  std::this_thread::sleep_for(200ms);
  EXPECT_LE(scheduler.runs(), runs + 1) << "more than the one that had begun";
  EXPECT_EQ(outside, 0);
  store->heal();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() > runs + 1; }));
  scheduler.stop();
}

TEST_F(SchedulerTest, BadSchedulesDieInTheConstructor) {
  const auto refused = [&](const ScheduleConfig& config) {
    try {
      const Scheduler scheduler(client, "m", config, [](const Term&) {});
      return false;
    } catch (const Error& error) {
      return error.errc() == Errc::kMisconfigured;
    }
  };
  EXPECT_TRUE(refused(ScheduleConfig::rate(0ms, 0ms)));
  EXPECT_TRUE(refused(ScheduleConfig::rate(0ms, -1ms)));
  EXPECT_TRUE(refused(ScheduleConfig::delay(-1ms, 1s)));
  EXPECT_FALSE(refused(ScheduleConfig::delay(0ms, 1ms)));
}

TEST_F(SchedulerTest, TheWrongStateIsAnError) {
  Scheduler scheduler(client, "m", ScheduleConfig::rate(0ms, 1s), [](const Term&) {});
  EXPECT_THROW(scheduler.stop(), Error);
  scheduler.start();
  EXPECT_THROW(scheduler.start(), Error);
  scheduler.stop();
}

}  // namespace
}  // namespace simba
