#include "cli/leader.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stop_token>
#include <system_error>
#include <utility>

#include "cli/chosen_store.h"
#include "cli/duration.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "cli/waiting.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

}  // namespace

void check_id(Client& client, const Duty& duty) {
  if (duty.id.empty()) return;
  try {
    client.store().check_label(duty.id);
  } catch (const Error& error) {
    throw UsageError(duty.id_origin + ": " + error.what());
  }
}

std::string why_not_started(const Duty& duty, int error) {
  const std::string& program = duty.program.front();
  const bool by_path = program.find('/') != program.npos;
  const bool is_line = duty.program.size() == 1 && program.find(' ') != program.npos;
  return "cannot run '" + printable(program) + "': " +
         (error == ENOENT && !by_path ? "no such command in PATH"
                                      : std::generic_category().message(error)) +
         (error == ENOENT && is_line ? "; leave the quotes out, or write sh -c before it" : "");
}

std::string why_lost(const Loss& loss) {
  // The program is ended before the lease is over: then nothing is lost yet.
  const bool ended_before =
      loss.reason == LossReason::kNone || loss.reason == LossReason::kReleased;
  std::string why = ended_before ? "it was not renewed in time" : to_string(loss.reason);
  if (!loss.superseded_by.empty()) why += ", now owned by " + printable(loss.superseded_by);
  return why;
}

Leader::Leader(const Duty& duty)
    : duty_(duty), timing_(Timing::of(duty.contend)), initial_delay_(duty.contend.initial_delay) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // should a guardian die, its children become ours
  ClientOptions options;
  options.contend = duty.contend;
  options.on_event = [this](const Event& event) {
    if (event.kind == Event::Kind::kRenewed) news_.ring();
  };
  options.log = [this](LogLevel level, std::string_view line) {
    if (level != LogLevel::kInfo && !shows_progress_) say(line);
  };
  client_.emplace(open_client(duty.store, options));
  check_id(*client_, duty);
  if (!duty.quiet) tell_if_new(*client_, duty.mutex);
  locker_.emplace(*client_, duty.mutex, duty.contend, duty.id);
}

Leader::~Leader() = default;

int Leader::lead(const std::function<std::optional<int>()>& serve) {
  const std::string name = printable(duty_.mutex);
  while (stopped_by_ == 0 && acquire()) {
    tell("leads '" + name + "', token " + std::to_string(locker_->token()));
    was_ended_ = false;
    rest_ = nanoseconds{0};
    const std::optional<int> code = serve();
    const bool lost = was_ended_ || !leads();
    const Loss loss = locker_->term().loss();
    locker_->unlock();
    if (code && stopped_by_ == 0) return *code;
    if (lost) {
      say("lost '" + name + "' (" + why_lost(loss) + ')' +
          (was_ended_ ? ": the program was ended" : ""));
    }
    rest();
  }
  die_by(stopped_by_);
}

bool Leader::acquire() {
  shows_progress_ = !duty_.quiet && is_screen(STDERR_FILENO);
  const bool is_told = !duty_.quiet && !shows_progress_;
  const Patience patience{std::nullopt, shows_progress_, std::exchange(initial_delay_, 0ms),
                          is_told};
  const Waited waited = wait_for_mutex(*client_, *locker_, signals_, patience);
  shows_progress_ = false;
  if (waited.end == Wait::kAcquired) return true;
  stopped_by_ = waited.signal;
  return false;
}

Outcome Leader::run_program() {
  const Term term = locker_->term();
  const std::stop_callback on_loss(term.lost(), [this] { news_.ring(); });
  const GuardianHandle guardian =
      spawn_guardian({duty_.program, duty_.mutex, duty_.kill_after, terminal_.fd(), duty_.secrets});
  Supervisor::Limits limits{timing_.lease()};
  limits.signals = Supervisor::OnSignal::kEnds;
  limits.streams = Supervisor::Streams::kKept;
  Supervisor supervisor(guardian, signals_, terminal_, term, limits);
  const Outcome outcome = supervisor.watch(news_.fd());
  waitpid(guardian.pid, nullptr, 0);
  stopped_by_ =
      outcome.end == Outcome::End::kStopped ? outcome.signal : keyboard_signal(outcome, terminal_);
  was_ended_ = outcome.end == Outcome::End::kLost;
  if (outcome.end == Outcome::End::kUnguarded) {
    say("the guardian process was killed or stopped: the program was ended");
  }
  return outcome;
}

bool Leader::pause(nanoseconds span) {
  const Term term = locker_->term();
  const std::stop_callback on_loss(term.lost(), [this] { news_.ring(); });
  const LocalTime until = BootClock::now() + span;
  while (term.is_owner() && stopped_by_ == 0) {
    if (BootClock::now() >= until) return true;
    wait(until, term.time_left());
  }
  return false;
}

void Leader::rest() {
  const LocalTime until = BootClock::now() + rest_;
  while (stopped_by_ == 0 && BootClock::now() < until) wait(until, rest_);
}

void Leader::wait(LocalTime until, nanoseconds longest) {
  const auto left =
      std::chrono::ceil<milliseconds>(std::min<nanoseconds>(until - BootClock::now(), longest));
  std::array<pollfd, 2> sources{{{news_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
  poll(sources.data(), sources.size(),
       static_cast<int>(std::clamp<milliseconds>(left, 1ms, 60s).count()));
  if (sources[0].revents != 0) news_.hush();
  while (const auto signal = signals_.next()) {
    if (ends_waiting(*signal)) stopped_by_ = *signal;
    if (*signal == SIGTSTP) stop_by_tstp(Stop::kSelf);
  }
}

void Leader::tell(const std::string& line) const {
  if (!duty_.quiet) say(line);
}

}  // namespace simba::cli
