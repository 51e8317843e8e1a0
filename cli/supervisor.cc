#include "cli/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>

#include "cli/descendants.h"
#include "cli/output.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// Somebody who stops the guardian again and again wants the program unguarded: it ends.
constexpr int kMaxContinues = 3;

// Whoever reads what the program writes, or writes what it reads, sees when the program lets go.
void let_go_of_streams() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) dup2(null, standard);
  close(null);
}

template <std::size_t size>
void put(std::array<char, size>& field, const std::string& text) {
  std::snprintf(field.data(), field.size(), "%s", text.c_str());
}

}  // namespace

int keyboard_signal(const Outcome& outcome, const Terminal& terminal) {
  if (outcome.end != Outcome::End::kByItself || !WIFSIGNALED(outcome.status)) return 0;
  const int signal = WTERMSIG(outcome.status);
  const bool is_of_keyboard = signal == SIGINT || signal == SIGQUIT;
  return is_of_keyboard && (terminal.was_given() || outcome.passed_on == signal) ? signal : 0;
}

Supervisor::Supervisor(const GuardianHandle& guardian, const Signals& signals, Terminal& terminal,
                       const Term& term, const Limits& limits)
    : guardian_(guardian),
      signals_(signals),
      terminal_(terminal),
      term_(term),
      limits_(limits),
      heartbeat_(std::clamp<nanoseconds>(limits.lease / 16, 20ms, 1s)),
      patience_(std::max<nanoseconds>(limits.lease, 10s)) {}

Outcome Supervisor::watch(int news) {
  start();
  while (!outcome_) {
    sleep(news);
    // What the guardian has to say comes first: this process may have been stopped for long.
    read_reports();
    read_signals();
    check_guardian();
    check_ownership();
    check_heartbeat();
  }
  terminal_.take_back_from(group_);
  outcome_->start_error = start_error_;
  outcome_->passed_on = passed_on_;
  // It came when the program had just ended by itself, or by the same cause: not to be forgotten.
  const bool is_too_late = outcome_->end == Outcome::End::kByItself && stopped_by_ != 0;
  return is_too_late ? Outcome{Outcome::End::kStopped, 0, stopped_by_} : *outcome_;
}

void Supervisor::start() {
  Order order;
  order.kind = Order::Kind::kStart;
  order.deadline = refresh_deadline();
  order.foreground = terminal_.gives_foreground();
  put(order.token, std::to_string(term_.token()));
  put(order.owner, term_.wire_id());
  guardian_.link.send(order);
  if (order.foreground) terminal_.note_given();
  beat_at_ = BootClock::now() + heartbeat_;
}

void Supervisor::sleep(int news) {
  std::array<pollfd, 3> sources{
      {{guardian_.link.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}, {news, POLLIN, 0}}};
  const LocalTime until = ending_ ? deadline_ : std::min(beat_at_, deadline_);
  const auto left = std::chrono::ceil<milliseconds>(until - BootClock::now());
  poll(sources.data(), sources.size(),
       static_cast<int>(std::clamp<milliseconds>(left, 0ms, 60s).count()));
  if (sources[2].revents == 0) return;
  eventfd_t count = 0;
  eventfd_read(news, &count);
  beat_at_ = BootClock::now();  // the guardian has to know
}

// --- what the guardian says ----------------------------------------------------------------------

void Supervisor::read_reports() {
  while (!outcome_) {
    const auto received = guardian_.link.receive_report();
    if (!received.packet) return;  // if it is gone, SIGCHLD says so
    asked_at_.reset();
    hear(*received.packet);
  }
}

void Supervisor::hear(const Report& report) {
  switch (report.kind) {
    case Report::Kind::kAlive:
      break;
    case Report::Kind::kStarted:
      started(report.value);
      break;
    case Report::Kind::kNotStarted:
      start_error_ = report.value;
      break;
    case Report::Kind::kStopped:
      stopped(report.value);
      break;
    case Report::Kind::kLeftBehind:
      say("the program ended and left others running: they are being ended too, before the mutex "
          "is "
          "released");
      break;
    case Report::Kind::kEnded: {
      const bool over = ending_ || report.out_of_time || !term_.is_owner();
      outcome_ = Outcome{over ? why_over() : Outcome::End::kByItself, report.value, stopped_by_};
      break;
    }
  }
}

void Supervisor::started(pid_t group) {
  group_ = group;
  if (limits_.streams == Streams::kLetGo) let_go_of_streams();
}

// As a shell would: give the terminal to a program that asked for it; else stop as a whole, so that
// the shell above can do something else, and go on when it continues us.
void Supervisor::stopped(int signal) {
  if (ending_ || !terminal_.is_ours()) return;
  // Somebody's STOP is no key: it does not stop the script around us, which only stands there too.
  if (signal == SIGSTOP && !terminal_.is_input()) return;
  const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
  if (wants_terminal && terminal_.is_in_foreground()) {
    terminal_.give_to(group_);
    order(Order::Kind::kContinue);
    return;
  }
  terminal_.take_back_from(group_);
  const bool was_stopped = stop_by_tstp(Stop::kJob);
  if (!was_stopped && wants_terminal) order(Order::Kind::kSignal, SIGHUP);  // it would ask for ever
  if (terminal_.was_given() && terminal_.is_in_foreground()) terminal_.give_to(group_);
  order(Order::Kind::kContinue);
}

// --- what others do to us ------------------------------------------------------------------------

void Supervisor::read_signals() {
  while (const auto signal = signals_.next()) {
    if (limits_.signals == OnSignal::kEnds && ends_waiting(*signal)) {
      stopped_by_ = *signal;
      if (!ending_) order(Order::Kind::kEnd);
      ending_ = true;
    } else if (is_forwarded(*signal)) {
      passed_on_ = *signal;
      order(Order::Kind::kSignal, *signal);
    } else if (*signal == SIGCONT) {
      order(Order::Kind::kContinue);
    }
  }
}

void Supervisor::check_guardian() {
  int status = 0;
  if (outcome_ || waitpid(guardian_.pid, &status, WNOHANG | WUNTRACED) != guardian_.pid) return;
  if (WIFSTOPPED(status) && ++continued_ <= kMaxContinues) {
    kill(guardian_.pid, SIGCONT);
    return;
  }
  is_reaped_ = !WIFSTOPPED(status);
  read_reports();  // its last words
  if (!outcome_) take_over(Outcome::End::kUnguarded);
}

void Supervisor::check_ownership() {
  if (outcome_) return;
  const LocalTime now = BootClock::now();
  if (!term_.is_owner() && !ending_) {
    ending_ = true;
    const LossReason why = term_.loss().reason;
    // Somebody else may be in already: no time for the program to end well.
    if (why == LossReason::kSuperseded || why == LossReason::kReplaced) deadline_ = now;
    order(Order::Kind::kEnd);
  }
  if (now >= refresh_deadline()) {
    take_over(why_over());
  } else if (!ending_) {
    tell_deadline(now);
  }
}

void Supervisor::tell_deadline(LocalTime now) {
  if (now < beat_at_) return;
  beat_at_ = now + heartbeat_;
  if (!asked_at_) asked_at_ = now;
  order(Order::Kind::kDeadline);
}

void Supervisor::check_heartbeat() {
  if (outcome_ || !asked_at_ || BootClock::now() < *asked_at_ + patience_) return;
  take_over(Outcome::End::kUnguarded);
}

// --- what we do ----------------------------------------------------------------------------------

void Supervisor::take_over(Outcome::End why) {
  if (!is_reaped_) kill(guardian_.pid, SIGKILL);  // else its number may be another's by now
  nanoseconds nap = 1ms;
  do {  // its children become ours
    kill_descendants();
    std::this_thread::sleep_for(nap);
    nap = std::min<nanoseconds>(2 * nap, 1s);
  } while (!reap_descendants());
  outcome_ = Outcome{why, 0, stopped_by_};
}

void Supervisor::order(Order::Kind kind, int signal) const {
  Order order;
  order.kind = kind;
  order.signal = signal;
  order.deadline = deadline_;
  guardian_.link.send(order);
}

// The clock is read first: a pause in between makes the deadline earlier, never later.
LocalTime Supervisor::refresh_deadline() {
  const LocalTime now = BootClock::now();
  const nanoseconds left = term_.time_left();
  if (left <= 0ns || ending_) return deadline_;
  const LocalTime end = now + left;
  deadline_ = std::min(end, limits_.hold_until);
  return deadline_;
}

Outcome::End Supervisor::why_over() const {
  if (stopped_by_ != 0 && term_.is_owner()) return Outcome::End::kStopped;
  return deadline_ == limits_.hold_until ? Outcome::End::kHeldTooLong : Outcome::End::kLost;
}

}  // namespace simba::cli
