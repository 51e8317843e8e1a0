#include "cli/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/descendants.h"
#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/servers.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// What a program leaves behind has this long to end by itself.
constexpr nanoseconds kTimeToSettle = 100ms;
// Between two rounds of KILL, doubled each time: what belongs to another user cannot be killed.
constexpr nanoseconds kNextRound = 20ms;
constexpr nanoseconds kLastRound = 1s;

class Guardian {
 public:
  Guardian(const Ward& ward, GuardianLink link) : ward_(ward), link_(std::move(link)) {}
  [[noreturn]] void run();

 private:
  // kRunning -> kSettling (the program ended, others did not) -> kAsked (TERM) -> kKilling
  enum class Stage { kWaiting, kRunning, kSettling, kAsked, kKilling };

  void set_up();
  void hear_simba();
  void obey(const Order& order);
  void start(const Order& order);
  void end_by(LocalTime kill_at);
  void reap();
  void note(pid_t pid, int status);
  void keep_time();
  LocalTime next_step() const;
  void arm();
  [[noreturn]] void finish();
  pid_t living_group() const { return status_ ? 0 : program_; }

  const Ward& ward_;
  const GuardianLink link_;
  int children_ = -1, timer_ = -1;
  Stage stage_ = Stage::kWaiting;
  pid_t program_ = 0;
  std::optional<int> status_;  // of the program, once it has ended
  LocalTime deadline_{};
  LocalTime step_at_ = LocalTime::max();  // kSettling, kAsked, kKilling: when the next step is due
  nanoseconds round_ = kNextRound;
  bool out_of_time_ = false;
  bool simba_is_gone_ = false;
};

void Guardian::set_up() {
  prctl(PR_SET_NAME, "simba-guardian");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  setpgid(0, 0);
  sigset_t all, child;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  children_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  timer_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (children_ < 0 || timer_ < 0) _exit(1);
}

void Guardian::run() {
  set_up();
  while (true) {
    std::array<pollfd, 3> sources{
        {{link_.fd(), POLLIN, 0}, {children_, POLLIN, 0}, {timer_, POLLIN, 0}}};
    if (simba_is_gone_) sources[0].fd = -1;
    poll(sources.data(), sources.size(), -1);
    if (sources[0].revents != 0) hear_simba();
    if (sources[1].revents != 0) reap();
    keep_time();
    arm();
  }
}

void Guardian::hear_simba() {
  while (true) {
    const auto [order, closed] = link_.receive_order();
    if (order) obey(*order);
    if (closed) {
      if (stage_ == Stage::kWaiting) _exit(0);
      simba_is_gone_ = true;
      end_by(deadline_);
    }
    if (!order) return;
  }
}

void Guardian::obey(const Order& order) {
  switch (order.kind) {
    case Order::Kind::kStart:
      start(order);
      break;
    case Order::Kind::kDeadline:
      if (!out_of_time_) deadline_ = order.deadline;
      link_.send(Report{Report::Kind::kAlive, 0, false});
      break;
    case Order::Kind::kSignal:
      if (living_group() > 0) kill(-program_, order.signal);
      break;
    case Order::Kind::kContinue:
      if (living_group() > 0) kill(-program_, SIGCONT);
      break;
    case Order::Kind::kEnd:
      end_by(order.deadline);
      break;
  }
}

void Guardian::start(const Order& order) {
  deadline_ = order.deadline;
  if (BootClock::now() >= deadline_ - ward_.kill_after) {
    out_of_time_ = true;
    finish();
  }
  std::vector<char*> argv;
  for (const std::string& word : ward_.program) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto environment = program_environment(ward_.mutex, order.token.data(), order.owner.data());
  program_ = start_program(argv, environment, order.foreground ? ward_.tty : -1, link_);
  if (program_ < 0) {
    link_.send(Report{Report::Kind::kNotStarted, errno, false});
    status_ = W_EXITCODE(exit_code::kCannotStart, 0);
    finish();
  }
  stage_ = Stage::kRunning;
  link_.send(Report{Report::Kind::kStarted, program_, false});
  // Whoever reads what the program writes sees the end of it when the program ends.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) dup2(null, standard);
  close(null);
}

// Also when the end has begun already: it may have to come sooner.
void Guardian::end_by(LocalTime kill_at) {
  if (stage_ == Stage::kKilling) return;
  kill_at = std::min({kill_at, deadline_, BootClock::now() + ward_.kill_after});
  if (stage_ == Stage::kAsked) {
    step_at_ = std::min(step_at_, kill_at);
    return;
  }
  stage_ = Stage::kAsked;
  step_at_ = kill_at;
  ask_descendants_to_end(living_group());
}

void Guardian::reap() {
  signalfd_siginfo info;
  while (read(children_, &info, sizeof info) > 0) {
  }
  while (true) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);
    if (pid == 0) break;
    if (pid < 0) {
      if (program_ > 0) finish();
      return;
    }
    note(pid, status);
  }
  if (status_ && stage_ == Stage::kRunning) {
    stage_ = Stage::kSettling;
    step_at_ = BootClock::now() + std::min(kTimeToSettle, ward_.kill_after / 2);
  }
}

void Guardian::note(pid_t pid, int status) {
  if (pid != program_) return;
  if (WIFSTOPPED(status)) {
    if (stage_ != Stage::kRunning) return;  // our own doing
    link_.send(Report{Report::Kind::kStopped, WSTOPSIG(status), false});
  } else {
    status_ = status;
  }
}

void Guardian::keep_time() {
  const LocalTime now = BootClock::now();
  const bool is_up = stage_ == Stage::kRunning || stage_ == Stage::kSettling;
  if (is_up && now >= deadline_ - ward_.kill_after) {
    out_of_time_ = true;
    end_by(deadline_);
  } else if (stage_ == Stage::kSettling && now >= step_at_) {
    link_.send(Report{Report::Kind::kLeftBehind, 0, false});
    end_by(deadline_);
  } else if (stage_ == Stage::kAsked || stage_ == Stage::kKilling) {
    if (now < std::min(step_at_, deadline_) && stage_ == Stage::kAsked) return;
    if (now < step_at_ && stage_ == Stage::kKilling) return;
    stage_ = Stage::kKilling;
    if (living_group() > 0) kill(-program_, SIGKILL);
    kill_descendants();
    step_at_ = BootClock::now() + round_;
    round_ = std::min(2 * round_, kLastRound);
  }
}

LocalTime Guardian::next_step() const {
  switch (stage_) {
    case Stage::kWaiting:
      return LocalTime::max();
    case Stage::kRunning:
      return deadline_ - ward_.kill_after;
    case Stage::kSettling:
      return std::min(step_at_, deadline_ - ward_.kill_after);
    case Stage::kAsked:
      return std::min(step_at_, deadline_);
    case Stage::kKilling:
      return step_at_;
  }
  return step_at_;
}

void Guardian::arm() {
  itimerspec spec{};
  if (const LocalTime at = next_step(); at != LocalTime::max()) {
    const auto since_boot = std::max<nanoseconds>(at.time_since_epoch(), 1ns);
    spec.it_value.tv_sec = since_boot / 1s;
    spec.it_value.tv_nsec = (since_boot % 1s).count();
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Guardian::finish() {
  link_.send(Report{Report::Kind::kEnded, status_.value_or(0), out_of_time_});
  _exit(0);
}

}  // namespace

namespace {

constexpr const char* kAsked = "--guardian";
// argv: simba --guardian LINK KILL_AFTER TTY MUTEX PROGRAM...
constexpr int kFirstOfProgram = 6;

}  // namespace

GuardianHandle spawn_guardian(const Ward& ward) {
  GuardianLink::Pair ends = GuardianLink::make();
  std::vector<std::string> words{"simba",
                                 kAsked,
                                 std::to_string(ends.guardian.fd()),
                                 std::to_string(ward.kill_after.count()),
                                 std::to_string(ward.tty),
                                 ward.mutex};
  words.insert(words.end(), ward.program.begin(), ward.program.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int kept : {ends.guardian.fd(), ward.tty}) {
    if (kept > STDERR_FILENO) posix_spawn_file_actions_adddup2(&actions, kept, kept);
  }
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(),
                                own_environment(ward.secrets).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), "posix_spawn");
  return {pid, std::move(ends.simba)};
}

void guard_if_asked(int argc, char** argv) {
  if (argc <= kFirstOfProgram || std::string_view(argv[1]) != kAsked) return;
  GuardianLink link(std::atoi(argv[2]));  // NOLINT(cert-err34-c): our own words
  Ward ward{{argv + kFirstOfProgram, argv + argc},
            argv[5],
            nanoseconds{std::atoll(argv[3])},  // NOLINT(cert-err34-c)
            std::atoi(argv[4])};               // NOLINT(cert-err34-c)
  for (const int ours : {link.fd(), ward.tty}) {
    if (ours > STDERR_FILENO) fcntl(ours, F_SETFD, FD_CLOEXEC);
  }
  Guardian(ward, std::move(link)).run();
}

GuardianHandle start_guardian(const Ward& ward) {
  GuardianLink::Pair ends = GuardianLink::make();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid > 0) return {pid, std::move(ends.simba)};
  { const GuardianLink not_ours = std::move(ends.simba); }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
  for (const std::string& name : ward.secrets) unsetenv(name.c_str());
  Guardian(ward, std::move(ends.guardian)).run();
}

}  // namespace simba::cli
