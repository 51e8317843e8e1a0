#include "torture/worker.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "simba/connect.h"
#include "simba/contend_service.h"
#include "simba/error.h"
#include "simba/locker.h"
#include "testing/dice.h"
#include "torture/leak.h"
#include "torture/notebook.h"
#include "torture/plan.h"
#include "torture/pulse.h"
#include "torture/recording_store.h"
#include "torture/run_queue.h"
#include "torture/telling.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using Kind = Record::Kind;

std::atomic<bool> ends{false};

// By the process too: two that own under one wire id are two, and the store takes them for one.
std::uint64_t name_of(const Term& term) {
  return std::hash<std::string>{}(term.wire_id() + '@' + std::to_string(getpid()));
}

void nap(nanoseconds span) { std::this_thread::sleep_for(span); }

// Works on one mutex while it owns it: looks, and writes to the registers.
//
// Threads: one.
class Worker {
 public:
  Worker(const Plan& plan, int client, int mutex, std::stop_token stop)
      : plan_(plan),
        stop_(std::move(stop)),
        client_(client),
        mutex_(mutex),
        notebook_(plan.notebook(client, mutex)),
        registers_(plan.registers(mutex)),
        // Each process of a client draws others.
        dice_(plan.seed + (static_cast<std::uint64_t>(getpid()) << 20) +
              static_cast<std::uint64_t>(mutex)) {}

  void contend(const Client& client) {
    // The two ways in which users hold a mutex.
    if (mutex_ % 2 == 0) {
      lock_again_and_again(client);
    } else {
      lead(client);
    }
  }

 private:
  // Two clients have one label, as those of two hosts may.
  std::string id() const { return "client-" + std::to_string(client_ / 2); }

  void lock_again_and_again(const Client& client) {
    SimbaLocker locker(client, plan_.mutex(mutex_), plan_.options(), id());
    while (!ends) {
      const bool is_patient = dice_.chance(0.5);
      const nanoseconds patience = dice_.between(50ms, plan_.lease());
      if (!(is_patient ? locker.lock(stop_) : locker.try_lock_for(patience))) continue;
      const Term term = locker.term();
      const LocalTime until = BootClock::now() + dice_.between(10ms, plan_.lease());
      work(term, [&] { return BootClock::now() < until; });
      locker.unlock();
      look_until_told(term);
      nap(dice_.between(0ms, 50ms));
    }
  }

  void lead(const Client& client) {
    ContendOptions options = plan_.options();
    options.max_hold = plan_.lease();
    const auto contender = make_contender(
        plan_.mutex(mutex_),
        {[this](const MutexState& state) {
           call_back(Kind::kAcquired, state.term, [&] {
             const Term term = state.term;
             work(term, [lost = term.lost()] { return !lost.stop_requested(); });
           });
         },
         [this](const MutexState& state) {
           call_back(Kind::kReleased, state.term, [this] { nap(dice_.between(0ms, 5ms)); });
         }},
        id());
    MutexContendService service(client, contender, options);
    service.start();
    await_stop();
    service.stop();
  }

  void call_back(Kind kind, const Term& term, const std::function<void()>& callback) {
    Record record;
    record.kind = kind;
    record.token = term.token();
    record.term = name_of(term);
    record.process = static_cast<std::uint64_t>(getpid());
    record.before = BootClock::now();
    callback();
    record.after = BootClock::now();
    note(record);
  }

  void await_stop() {
    std::mutex guard;
    std::unique_lock lock(guard);
    std::condition_variable_any never;
    never.wait(lock, stop_, [] { return false; });
  }

  // While the term lasts and `goes_on` says so.
  void work(const Term& term, const std::function<bool()>& goes_on) {
    while (!ends && goes_on() && look(term).is_owner) {
      write(term);
      nap(plan_.pace());
    }
    look_until_told(term);
  }

  // A term that is over is told so soon; how soon is judged by these looks, and by how long those
  // that tell it waited for a processor. Of one that still waits the kernel does not say it yet.
  void look_until_told(const Term& term) {
    Record seen = look(term);
    if (seen.is_owner || seen.is_told) return;
    const LocalTime since = seen.after;
    const RunQueue before = RunQueue::now();
    for (int i = 1; i < kMostOverLooks && !seen.is_owner && !seen.is_told; ++i) {
      nap(kOverPace);
      seen = look_at(term);
      if (seen.is_told && seen.before - since > kTellsWithin)
        seen.waited = RunQueue::now().since(before);
      note(seen);
    }
  }

  Record look(const Term& term) {
    const Record record = look_at(term);
    note(record);
    return record;
  }

  // Callbacks that do not take turns, and would be seen so, are on two threads.
  void note(const Record& record) {
    const std::lock_guard lock(guard_);
    notebook_.add(record);
  }

  static Record look_at(const Term& term) {
    Record record;
    record.token = term.token();
    record.term = name_of(term);
    record.before = BootClock::now();
    record.is_in_ttl = term.is_in_ttl();
    record.is_owner = term.is_owner();
    record.is_told = term.lost().stop_requested();
    record.after = BootClock::now();
    return record;
  }

  // As a program does that trusts its lease: look at the clock, then act. In between it can be
  // stopped for any time, and is, when the harness says so.
  void write(const Term& term) {
    if (!look(term).is_in_ttl) return;
    if (notebook_.enter_window()) {
      // On a processor all the time, so that what follows comes at once when it may go on.
      LocalTime now = BootClock::now();
      const LocalTime patience = now + 10 * nanoseconds{plan_.lease()};
      while (notebook_.window() == Notebook::Window::kInside && now < patience) {
        now = BootClock::now();
      }
      look(term);
    }
    apply(term, Kind::kUnfenced, [this](Token token) { return registers_.write_unfenced(token); });
    apply(term, Kind::kFenced, [this](Token token) { return registers_.write_fenced(token); });
  }

  void apply(const Term& term, Kind kind, const std::function<Token(Token)>& store) {
    Record record;
    record.token = term.token();
    record.term = name_of(term);
    record.kind = kind;
    record.before = BootClock::now();
    record.found = store(record.token);
    record.after = BootClock::now();
    if (kind == Kind::kFenced && record.found > record.token) record.kind = Kind::kRefused;
    note(record);
  }

  const Plan& plan_;
  const std::stop_token stop_;
  const int client_, mutex_;
  std::mutex guard_;
  Notebook notebook_;  // written to under guard_
  Registers registers_;
  testing::Dice dice_;
};

int work(const std::string& directory, int client) {
  const char* url = std::getenv(kWorkerUrl);  // NOLINT(concurrency-mt-unsafe): no thread yet
  if (url == nullptr) return 2;
  std::signal(SIGTERM, [](int) { ends = true; });
  const Plan plan = Plan::load(directory);
  const auto errors = std::make_shared<ErrorLog>(plan.errors(client));
  ClientOptions options;
  options.log = [errors](LogLevel level, std::string_view line) {
    if (level == LogLevel::kInfo) return;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    if (level == LogLevel::kError) errors->note_line(line);
  };
  const Client connection(
      std::make_shared<RecordingStore>(open_store(url, options.log),
                                       std::make_shared<CallLog>(plan.calls(client)), errors),
      options);
  std::vector<std::jthread> threads;
  for (int mutex = 0; mutex < plan.mutexes; ++mutex) {
    threads.emplace_back([&, client, mutex](const std::stop_token& stop) {
      Worker worker(plan, client, mutex, stop);
      while (!ends) {
        try {
          worker.contend(connection);
        } catch (const Error& error) {  // judged by its kind; anything else is a bug, and the end
          std::fprintf(stderr, "%s\n", error.what());
          errors->note_thrown(error);
          if (error.errc() == Errc::kMisuse) throw;
          nap(50ms);
        }
      }
    });
  }
  const Pulse pulse(plan.pulse(client));
  Leak leak(connection, plan.prefix);
  while (!ends) {
    pulse.beat();
    if (plan.leaks && client == 0) leak.drip();
    nap(100ms);
  }
  for (std::jthread& thread : threads) thread.request_stop();  // all at once
  return 0;
}

}  // namespace

void work_if_asked(int argc, char** argv) {
  if (argc != 4 || std::string_view(argv[1]) != kWorkerWord) return;
  int code = 2;
  try {
    code = work(argv[2], std::atoi(argv[3]));  // NOLINT(cert-err34-c): our own words
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::exit(code);  // NOLINT(concurrency-mt-unsafe): all threads have ended
}

}  // namespace simba::torture
