#include "cli/waiting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>

#include "cli/duration.h"
#include "cli/output.h"
#include "cli/owner_view.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds kRepaint = 1s;

// One line on the terminal that is painted over and over.
class Progress {
 public:
  Progress(Client& client, const std::string& mutex, bool shown)
      : client_(client), mutex_(mutex), shown_(shown) {}
  ~Progress() {
    if (painted_) put("");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_shown() const { return shown_; }
  void paint() {
    if (!shown_) return;
    std::string who;
    try {
      who = who_holds(client_, mutex_);
    } catch (const Error& error) {
      who = std::string("the store does not answer: ") + error.what();
    }
    paint(who);
  }
  void paint(const std::string& what) {
    if (!shown_) return;
    put("waiting for " + printable(mutex_) + ": " + what);
    painted_ = true;
  }

 private:
  void put(std::string line) const {
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
      line = cut(line, size.ws_col - 1U);
    }
    line = "\r\033[K" + line;
    static_cast<void>(write(STDERR_FILENO, line.data(), line.size()));
  }

  Client& client_;
  const std::string& mutex_;
  const bool shown_;
  bool painted_ = false;
};

void tell_once(Client& client, const std::string& mutex) {
  std::string who;
  try {
    who = ": " + who_holds(client, mutex);
  } catch (const Error&) {
    // The client's log says that the store is away.
  }
  say("waits for '" + printable(mutex) + "'" + who);
}

// lock() on a thread of its own.
class Attempt {
 public:
  explicit Attempt(SimbaLocker& locker)
      : done_(eventfd(0, EFD_CLOEXEC)), thread_([this, &locker] { run(locker); }) {}
  ~Attempt() {
    if (thread_.joinable()) static_cast<void>(give_up());
    close(done_);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  int done() const { return done_; }
  bool result() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return acquired_;
  }
  // True when it was acquired all the same.
  bool give_up() {
    stop_.request_stop();
    thread_.join();
    return acquired_;
  }

 private:
  void run(SimbaLocker& locker) {
    try {
      acquired_ = locker.lock(stop_.get_token());
    } catch (...) {
      error_ = std::current_exception();
    }
    eventfd_write(done_, 1);
  }

  const int done_;
  std::stop_source stop_;
  bool acquired_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

// The signal that ends the waiting, if one came.
int interruption(const Signals& signals) {
  while (const auto signal = signals.next()) {
    if (ends_waiting(*signal)) return *signal;
    if (*signal == SIGTSTP) stop_by_tstp(Stop::kSelf);
  }
  return 0;
}

int poll_timeout(LocalTime until, bool repaints) {
  const milliseconds longest = repaints ? kRepaint : milliseconds{60'000};
  const auto left = std::chrono::ceil<milliseconds>(until - BootClock::now());
  return static_cast<int>(std::clamp(left, 0ms, longest).count());
}

Waited wait_beside(Attempt& attempt, const Signals& signals, Progress& progress, LocalTime until) {
  while (true) {
    std::array<pollfd, 2> sources{{{attempt.done(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
    poll(sources.data(), sources.size(), poll_timeout(until, progress.is_shown()));
    if (sources[0].revents != 0) {
      return {attempt.result() ? Wait::kAcquired : Wait::kTooLong, 0};
    }
    if (const int signal = interruption(signals)) {
      attempt.give_up();
      return {Wait::kInterrupted, signal};
    }
    if (BootClock::now() >= until) return {attempt.give_up() ? Wait::kAcquired : Wait::kTooLong, 0};
    progress.paint();
  }
}

// The signal that came first, or 0.
int wait_at_first(const Signals& signals, Progress& progress, LocalTime until) {
  while (BootClock::now() < until) {
    const auto left = std::chrono::ceil<milliseconds>(until - BootClock::now());
    progress.paint("it is asked for in " + print_duration(left) + " (initial-delay)");
    pollfd source{signals.fd(), POLLIN, 0};
    poll(&source, 1, poll_timeout(until, progress.is_shown()));
    if (const int signal = interruption(signals)) return signal;
  }
  return 0;
}

}  // namespace

Waited wait_for_mutex(Client& client, SimbaLocker& locker, const Signals& signals,
                      const Patience& patience) {
  Progress progress(client, locker.mutex(), patience.shows_progress);
  if (patience.delay > 0ms) {
    const int signal = wait_at_first(signals, progress, BootClock::now() + patience.delay);
    if (signal != 0) return {Wait::kInterrupted, signal};
  }
  const LocalTime until = patience.wait ? BootClock::now() + *patience.wait : LocalTime::max();
  if (locker.try_lock()) return {Wait::kAcquired, 0};
  if (patience.wait == milliseconds{0}) return {Wait::kTooLong, 0};
  if (patience.is_told) tell_once(client, locker.mutex());
  progress.paint();
  Attempt attempt(locker);
  return wait_beside(attempt, signals, progress, until);
}

std::string who_holds(Client& client, const std::string& mutex) {
  const OwnerView view(mutex, client.observe(mutex, 1s));
  if (view.free) return "free just now";
  const std::string lease = "lease ends in at most " + print_bound(view.lease_left);
  if (view.owner.empty()) return "its owner was evicted, " + lease;
  const std::string since = view.held_for ? " for " + print_duration(*view.held_for) : "";
  return "held by " + printable(view.label) + since + ", " + lease;
}

}  // namespace simba::cli
