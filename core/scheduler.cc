#include "simba/scheduler.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/coded.h"
#include "core/ticks.h"

namespace simba::inline v0 {
namespace {

constexpr std::chrono::hours kYear{24 * 365};

void check(const ScheduleConfig& schedule) {
  const auto refuse = [](const char* what, milliseconds value, const char* limit) {
    throw Error(Errc::kMisconfigured, std::string("the schedule's ") + what + " is " +
                                          std::to_string(value.count()) + " ms; it must be " +
                                          limit);
  };
  if (schedule.period <= milliseconds{0} || schedule.period > kYear) {
    refuse("period", schedule.period, "above 0 and at most a year (31536000000 ms)");
  }
  if (schedule.initial_delay < milliseconds{0} || schedule.initial_delay > kYear) {
    refuse("initial delay", schedule.initial_delay,
           "at least 0 and at most a year (31536000000 ms)");
  }
}

// The schedule is on_acquired itself: it returns when the term is lost and the running work with
// it, and only then is the mutex released.
class ScheduledContender : public MutexContender {
 public:
  ScheduledContender(LogSink log, std::string mutex, std::string contender_id,
                     const ScheduleConfig& schedule, Scheduler::Work work)
      : MutexContender(std::move(mutex), std::move(contender_id)),
        log_(std::move(log)),
        schedule_(schedule),
        work_(std::move(work)) {}

  void on_acquired(const MutexState& state) override {
    const std::stop_token lost = state.term.lost();
    core::Ticks ticks(schedule_, BootClock::now());
    while (sleep_until(ticks.next(), lost)) {
      if (!state.term.is_in_ttl()) {  // a renewal is late: not now, but soon again
        sleep_until(BootClock::now() + kLateRenewal, lost);
        continue;
      }
      if (state.term.loss().reason != LossReason::kNone) return;  // stopped inside the work
      run(state.term);
      missed += ticks.ran(BootClock::now());
    }
  }

  std::atomic<std::uint64_t> runs{0}, missed{0}, failures{0};

 private:
  static constexpr milliseconds kLateRenewal{20};
  static constexpr nanoseconds kLongestNap = std::chrono::seconds{1};

  // False when the term was lost first. No condition variable waits on the boot clock: the clock of
  // this one stands still during suspend, so it does not wait for long at a time.
  bool sleep_until(LocalTime when, const std::stop_token& lost) {
    std::unique_lock lock(guard_);
    while (!lost.stop_requested()) {
      const nanoseconds left = when - BootClock::now();
      if (left <= nanoseconds{0}) return true;
      wakes_.wait_for(lock, lost, std::min(left, kLongestNap), [] { return false; });
    }
    return false;
  }

  void run(const Term& term) noexcept {
    ++runs;
    try {
      work_(term);
      return;
    } catch (const std::exception& error) {
      complain(std::string(": ") + error.what());
    } catch (...) {
      complain("");
    }
    ++failures;
  }
  void complain(const std::string& what) const {
    if (log_) log_(LogLevel::kError, "the scheduled work of '" + mutex() + "' threw" + what);
  }

  // Not the client: a thread of its own may be the last to hold this, and would end it then.
  const LogSink log_;
  const ScheduleConfig schedule_;
  const Scheduler::Work work_;
  std::mutex guard_;
  std::condition_variable_any wakes_;
};

}  // namespace

struct Scheduler::State {
  State(const Client& client, std::shared_ptr<ScheduledContender> its_contender,
        const ContendOptions& options)
      : contender(std::move(its_contender)), service(client, contender, options) {}
  const std::shared_ptr<ScheduledContender> contender;
  MutexContendService service;
};

Scheduler::Scheduler(const Client& client, std::string mutex, const ScheduleConfig& schedule,
                     Work work)
    : Scheduler(client, std::move(mutex), schedule, std::move(work), client.options().contend) {}

Scheduler::Scheduler(const Client& client, std::string mutex, const ScheduleConfig& schedule,
                     Work work, const ContendOptions& options, std::string contender_id) {
  check(schedule);
  if (!work) throw Error(Errc::kMisuse, "the schedule of '" + mutex + "' has no work: it is empty");
  auto contender = std::make_shared<ScheduledContender>(
      client.options().log, std::move(mutex), std::move(contender_id), schedule, std::move(work));
  state_ = std::make_shared<State>(client, std::move(contender), options);
}

Scheduler::~Scheduler() = default;

void Scheduler::start() { state_->service.start(); }

bool Scheduler::stop() {
  const nanoseconds patience = Timing::of(state_->service.options()).patience;
  return stop(std::chrono::ceil<milliseconds>(patience));
}

bool Scheduler::stop(milliseconds grace) { return state_->service.stop(grace); }

bool Scheduler::stop(std::error_code& error) {
  return core::coded(error, [this] { return stop(); });
}

bool Scheduler::stop(milliseconds grace, std::error_code& error) {
  return state_->service.stop(grace, error);
}

Status Scheduler::status() const { return state_->service.status(); }
bool Scheduler::is_owner() const { return state_->service.is_owner(); }
std::uint64_t Scheduler::runs() const { return state_->contender->runs; }
std::uint64_t Scheduler::missed() const { return state_->contender->missed; }
std::uint64_t Scheduler::failures() const { return state_->contender->failures; }

}  // namespace simba::inline v0
