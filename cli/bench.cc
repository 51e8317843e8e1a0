#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/waiting.h"
#include "simba/locker.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;
using Spans = std::vector<nanoseconds>;

// How long the holder waits until the other is surely waiting for it.
constexpr milliseconds kSettle{10};

// How long a store that did not answer the first claim is asked again.
constexpr milliseconds kPatience{10'000};

double microseconds_of(nanoseconds span) {
  return std::round(static_cast<double>(span.count()) / 100) / 10;
}

struct Measure {
  const char* name;
  const char* what;
  Spans spans;

  nanoseconds share(double part) const {
    const auto last = static_cast<double>(spans.size() - 1);
    return spans[static_cast<std::size_t>(std::ceil(last * part))];
  }
};

std::string text_of(const Measure& measure) {
  const auto number = [](nanoseconds span) {
    std::string text = std::to_string(microseconds_of(span) / 1000);
    return text.substr(0, text.find('.') + 4) + " ms";
  };
  return std::string(measure.what) + "  " + std::to_string(measure.spans.size()) + " times: p50 " +
         number(measure.share(0.5)) + ", p99 " + number(measure.share(0.99)) + ", at most " +
         number(measure.spans.back()) + '\n';
}

std::string json_of(const Measure& measure) {
  nlohmann::ordered_json object;
  object["measure"] = measure.name;
  object["count"] = measure.spans.size();
  object["p50_us"] = microseconds_of(measure.share(0.5));
  object["p99_us"] = microseconds_of(measure.share(0.99));
  object["max_us"] = microseconds_of(measure.spans.back());
  return object.dump() + '\n';
}

// At least one each, however short the time.
Spans lock_and_unlock(SimbaLocker& locker, LocalTime until) {
  Spans spans;
  do {
    const LocalTime began = BootClock::now();
    locker.lock();
    locker.unlock();
    spans.push_back(BootClock::now() - began);
  } while (BootClock::now() < until);
  return spans;
}

// Two who take turns: from the moment one lets go until the other has it.
class HandOver {
 public:
  HandOver(SimbaLocker& first, SimbaLocker& second, LocalTime until)
      : lockers_{&first, &second}, until_(until) {}

  // Throws Error when the store fails meanwhile.
  Spans run() {
    lockers_[0]->lock();
    {
      const std::jthread other([this] { guarded([this] { take_turns(1); }); });
      guarded([this] {
        let_go(0);
        take_turns(0);
      });
    }
    if (failure_) std::rethrow_exception(failure_);
    return std::move(spans_);
  }

 private:
  template <class Work>
  void guarded(Work work) {
    try {
      work();
    } catch (const Error&) {
      const std::lock_guard lock(guard_);
      failure_ = std::current_exception();
      over_ = true;
    }
  }
  void take_turns(std::size_t me) {
    while (!over_) {
      waits_[me] = true;
      lockers_[me]->lock();
      waits_[me] = false;
      if (over_) return lockers_[me]->unlock();
      spans_.push_back(BootClock::now() - let_go_);
      if (BootClock::now() >= until_) over_ = true;
      let_go(me);
    }
  }
  void let_go(std::size_t me) {
    while (!waits_[1 - me] && !over_) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(kSettle);
    let_go_ = BootClock::now();
    lockers_[me]->unlock();
  }

  const std::array<SimbaLocker*, 2> lockers_;
  const LocalTime until_;
  std::array<std::atomic<bool>, 2> waits_{};
  std::atomic<bool> over_{false};
  std::mutex guard_;
  std::exception_ptr failure_;  // guarded by guard_ until both have ended
  // Of whoever holds the mutex of the store:
  LocalTime let_go_{};
  Spans spans_;
};

// False: somebody has it. Only who was answered can tell; a slow store is no busy mutex.
bool take_at_once(SimbaLocker& locker) {
  std::error_code unanswered;
  return locker.try_lock(unanswered) || (unanswered && locker.try_lock_for(kPatience));
}

}  // namespace

int bench(const BenchCommand& command) {
  Client first = open_client(command.store), second = open_client(command.store);
  SimbaLocker one(first, command.mutex, command.contend),
      two(second, command.mutex, command.contend);
  if (!take_at_once(one)) {
    say("'" + printable(command.mutex) + "' is " + who_holds(first, command.mutex) +
        ": name another mutex");
    return exit_code::kNotAcquired;
  }
  one.unlock();
  const nanoseconds half = command.length / 2;
  std::array measures{
      Measure{"lock_unlock", "lock and unlock ", lock_and_unlock(one, BootClock::now() + half)},
      Measure{"hand_over", "hand-over       ", HandOver(one, two, BootClock::now() + half).run()}};
  bool written = true;
  for (Measure& measure : measures) {
    std::sort(measure.spans.begin(), measure.spans.end());
    written =
        print(command.format == Format::kJson ? json_of(measure) : text_of(measure)) && written;
  }
  return written ? exit_code::kOk : exit_code::kUnavailable;
}

}  // namespace simba::cli
