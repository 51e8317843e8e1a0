#include "simba/scheduler.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/api_fixture.h"
#include "core/thread_executor.h"

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

TEST_F(SchedulerTest, TheMaximumHoldTimeEndsTheRunAndTheNextTermGoesOn) {
  ContendOptions options = long_lease();
  options.max_hold = 100ms;
  std::mutex guard;
  std::vector<Term> terms;
  Scheduler scheduler(
      client, "m", ScheduleConfig::rate(0ms, 1ms),
      [&](const Term& term) {
        EXPECT_TRUE(eventually([&] { return term.lost().stop_requested(); }));
        const std::lock_guard lock(guard);
        terms.push_back(term);
      },
      options);
  scheduler.start();
  EXPECT_TRUE(eventually([&] { return scheduler.runs() >= 3; }));
  scheduler.stop();
  const std::lock_guard lock(guard);
  ASSERT_GE(terms.size(), 2u);
  EXPECT_EQ(terms[0].loss().reason, LossReason::kReleased);
  EXPECT_GT(terms[1].token(), terms[0].token());
}

// The real executor, with a clock that can be put forward: nothing happens by that alone.
class ShiftedExecutor : public Executor {
 public:
  void jump(nanoseconds span) { shift_ = shift_.load() + span; }
  void ring() { real_->set_alarm(BootClock::now()); }
  int times_asked() const { return times_asked_; }

  LocalTime now() const noexcept override {
    ++times_asked_;
    return BootClock::now() + shift_.load();
  }
  std::uint64_t random() override { return real_->random(); }
  void start(std::function<void()> on_alarm) override { real_->start(std::move(on_alarm)); }
  void set_alarm(LocalTime at) override {
    real_->set_alarm(at == LocalTime::max() ? at : at - shift_.load());
  }
  void call(Lane lane, std::shared_ptr<StoreCall> call) override {
    real_->call(lane, std::move(call));
  }
  void callback(std::function<void()> task) override { real_->callback(std::move(task)); }
  void revoke(std::function<void()> task) override { real_->revoke(std::move(task)); }
  void shut_down() override { real_->shut_down(); }

 private:
  const std::shared_ptr<Executor> real_ = core::make_thread_executor();
  std::atomic<nanoseconds> shift_{0ns};
  mutable std::atomic<int> times_asked_{0};
};

// A minute after the beginning of the term its ttl is over, and nobody has renewed it yet.
TEST_F(SchedulerTest, NoRunBeginsOutsideTheTtl) {
  constexpr milliseconds kPeriod = 300ms;
  ContendOptions options = long_lease();
  options.transition = 60s;
  options.grace = 1s;
  ClientOptions shifted = with(options);
  const auto executor = std::make_shared<ShiftedExecutor>();
  shifted.executor = executor;
  struct Seen {
    int runs = 0, outside = 0;
    LocalTime last{};
  };
  std::mutex guard;
  Seen seen;  // guarded by guard
  const auto look = [&] {
    const std::lock_guard lock(guard);
    return seen;
  };
  Scheduler scheduler(Client(store, shifted), "m", ScheduleConfig::delay(0ms, kPeriod),
                      [&](const Term& term) {
                        const std::lock_guard lock(guard);
                        if (!term.is_in_ttl()) ++seen.outside;
                        ++seen.runs;
                        seen.last = BootClock::now();
                      });
  scheduler.start();
  // The clock jumps between two runs, while the schedule sleeps: where the machine let us miss that
  // moment, a run may have been on its way already.
  bool was_in_time = false;
  for (int attempt = 0; attempt < 100 && !was_in_time; ++attempt) {
    const int before = look().runs;
    ASSERT_TRUE(eventually([&] { return look().runs > before; }));
    const Seen at_jump = look();
    executor->jump(80s);
    const Seen after = look();
    was_in_time = after.runs == at_jump.runs && BootClock::now() < after.last + kPeriod;
    if (was_in_time) {
      const int asked = executor->times_asked();
      EXPECT_TRUE(eventually([&] { return executor->times_asked() > asked + 5; }));
      EXPECT_EQ(look().outside, at_jump.outside);
      EXPECT_EQ(look().runs, at_jump.runs);
    }
    const int runs = look().runs;
    executor->ring();
    EXPECT_TRUE(eventually([&] { return look().runs > runs; })) << "it was renewed";
  }
  EXPECT_TRUE(was_in_time);
  EXPECT_TRUE(scheduler.stop());
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
  EXPECT_NE(misuse_of([&] { Scheduler(client, "m", ScheduleConfig::delay(0ms, 1ms), {}); }),
            "none");
}

TEST_F(SchedulerTest, TheWrongStateIsAnError) {
  Scheduler scheduler(client, "m", ScheduleConfig::rate(0ms, 1s), [](const Term&) {});
  EXPECT_THROW(scheduler.stop(), Error);
  scheduler.start();
  EXPECT_THROW(scheduler.start(), Error);
  scheduler.stop();
  std::error_code error;
  EXPECT_FALSE(scheduler.stop(error));
  EXPECT_EQ(error, Errc::kMisuse);
  error.clear();
  EXPECT_FALSE(scheduler.stop(20s, error));
  EXPECT_EQ(error, Errc::kMisuse);
  scheduler.start();
  EXPECT_TRUE(scheduler.stop(error));
  EXPECT_FALSE(error) << error.message();
}

}  // namespace
}  // namespace simba
