#include <nlohmann/json.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;
using Verdict = Finding::Verdict;

constexpr milliseconds kCallPatience{5'000};
constexpr milliseconds kWakePatience{3'000};
constexpr milliseconds kClockTolerance{1'000};
constexpr int kQuestions = 20;

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFailed:
      return "failed";
  }
  return "";
}

// "0.321 ms", for what is too short for print_duration().
std::string print_span(nanoseconds span) {
  if (span >= 1s) return print_duration(std::chrono::floor<milliseconds>(span));
  std::string text = std::to_string(std::chrono::duration<double, std::milli>(span).count());
  return text.substr(0, text.find('.') + 4) + " ms";
}

// A line for each thing that was looked at, as it is found.
class Report {
 public:
  explicit Report(Format format) : format_(format) {}

  void add(const Finding& finding) {
    failed_ = failed_ || finding.verdict == Verdict::kFailed;
    written_ = print(format_ == Format::kJson ? json_of(finding) : text_of(finding)) && written_;
  }
  bool has_failed() const { return failed_; }
  bool is_written() const { return written_; }

 private:
  static std::string padded(std::string text, std::size_t width) {
    return text.append(width - std::min(width, width_of(text)), ' ');
  }
  static std::string text_of(const Finding& finding) {
    const bool is_fine = finding.verdict == Verdict::kOk;
    return styled(is_fine ? Style::kDim : Style::kBold, padded(word_of(finding.verdict), 9)) +
           padded(finding.check, 11) + printable(finding.text) + '\n';
  }
  static std::string json_of(const Finding& finding) {
    nlohmann::ordered_json object;
    object["check"] = finding.check;
    object["verdict"] = word_of(finding.verdict);
    object["text"] = finding.text;
    return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  }

  const Format format_;
  bool failed_ = false, written_ = true;
};

// What a store warns of, on threads of its own.
class Warnings {
 public:
  LogSink sink() {
    return [this](LogLevel level, std::string_view line) {
      if (level == LogLevel::kInfo) return;
      const std::lock_guard lock(guard_);
      lines_.emplace_back(line);
    };
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(guard_);
    return lines_;
  }

 private:
  std::mutex guard_;
  std::vector<std::string> lines_;  // guarded by guard_
};

// A name nobody has: it is only asked for, which leaves nothing behind.
std::string unused_mutex() { return "simba-doctor-" + std::to_string(std::random_device{}()); }

struct Answered {
  nanoseconds median{}, longest{};
  nanoseconds clock_ahead{};  // of ours, by the quickest answer
};

Answered ask(Store& store, const std::string& mutex) {
  std::vector<nanoseconds> spans;
  Answered answered;
  nanoseconds quickest = nanoseconds::max();
  for (int i = 0; i < kQuestions; ++i) {
    const LocalTime began = BootClock::now();
    const std::string_view name = mutex;
    const Answers answers = store.observe({&name, 1}, began + kCallPatience);
    const nanoseconds span = BootClock::now() - began;
    if (const auto* error = std::get_if<Error>(&answers.at(0))) throw Error(*error);
    if (i == 0) continue;  // it waited for the connection
    spans.push_back(span);
    const auto* seen = std::get_if<Observation>(&answers.at(0));
    if (seen == nullptr || span >= quickest) continue;
    quickest = span;
    answered.clock_ahead = seen->now.time_since_epoch() + span / 2 -
                           std::chrono::system_clock::now().time_since_epoch();
  }
  std::sort(spans.begin(), spans.end());
  answered.median = spans[spans.size() / 2];
  answered.longest = spans.back();
  return answered;
}

Finding judge_answers(const Answered& answered, const Timing& timing) {
  const std::string text = "answers in " + print_span(answered.median) + " (median of " +
                           std::to_string(kQuestions - 1) + "), at most " +
                           print_span(answered.longest);
  if (answered.longest * 2 <= timing.call_deadline) return {"answers", Verdict::kOk, text};
  return {"answers", Verdict::kWarning,
          text + ": a renewal has " + print_span(timing.call_deadline) +
              ", so ownership may be lost under load; raise --ttl"};
}

Finding judge_clock(const Answered& answered) {
  const auto off = std::chrono::round<milliseconds>(answered.clock_ahead);
  if (std::chrono::abs(off) <= kClockTolerance) {
    return {
        "clock", Verdict::kOk,
        "the store's differs from ours by " + print_span(std::chrono::abs(answered.clock_ahead))};
  }
  return {"clock", Verdict::kWarning,
          "the store's is " + print_duration(std::chrono::abs(off)) +
              (off > 0ms ? " ahead of ours" : " behind ours") +
              ": leases do not mind, since the store's alone decides, but one of the two is wrong; "
              "look at NTP"};
}

Finding judge_wake_ups(Store& store, const std::string& mutex) {
  const std::string wire_id =
      store.traits().queues_waiters ? "doctor~0000000000000" : std::string();
  const auto watch = store.watch(mutex, wire_id, [] {});
  if (!watch) {
    return {"wake-ups", Verdict::kWarning,
            "this store cannot push here: who waits asks once a second, and a hand-over takes so "
            "long"};
  }
  const LocalTime until = BootClock::now() + kWakePatience;
  while (!watch->is_live() && BootClock::now() < until) std::this_thread::sleep_for(5ms);
  if (watch->is_live()) return {"wake-ups", Verdict::kOk, "who waits is told when it is free"};
  return {"wake-ups", Verdict::kWarning,
          "nothing is pushed: who waits asks once a second, and a hand-over takes so long; the "
          "page of the store tells what it needs"};
}

// None: it cannot work.
std::optional<Timing> judge_lease(const DoctorCommand& command, Report& report) {
  try {
    const Timing timing = Timing::of(command.contend);
    report.add({"lease", Verdict::kOk,
                "renewed every " + print_span(timing.renew) + ", free for others " +
                    print_span(timing.lease()) + " after the last renewal; a call may take " +
                    print_span(timing.call_deadline)});
    return timing;
  } catch (const Error& error) {
    report.add({"lease", Verdict::kFailed, command.lease_origins + ": " + error.what()});
    return std::nullopt;
  }
}

void examine(const DoctorCommand& command, const Timing& timing, Report& report) {
  const Inspection inspection = inspect_store(command.store.value);
  for (const Finding& finding : inspection.findings) report.add(finding);
  if (report.has_failed()) return;  // opening the store might make what is missing
  Warnings warnings;
  {
    const std::shared_ptr<Store> store = open_store(command.store.value, warnings.sink());
    const std::string mutex = unused_mutex();
    const Answered answered = ask(*store, mutex);
    report.add(judge_answers(answered, timing));
    if (inspection.tells_wall_time) report.add(judge_clock(answered));
    report.add(judge_wake_ups(*store, mutex));
  }
  for (const std::string& line : warnings.all()) report.add({"log", Verdict::kWarning, line});
}

}  // namespace

int doctor(const DoctorCommand& command) {
  Report report(command.format);
  try {
    if (const auto timing = judge_lease(command, report)) examine(command, *timing, report);
  } catch (const Error& error) {
    report.add({"store", Verdict::kFailed, told_of(command.store, error)});
  }
  if (!report.is_written()) return exit_code::kUnavailable;
  return report.has_failed() ? exit_code::kUnfit : exit_code::kOk;
}

}  // namespace simba::cli
