// simba_demo: three processes, one SQLite file, one leader; the leader is killed, another takes
// over, and hands over cleanly in the end. Prints a timeline; fails when two led at once or nobody
// took over. Ends by itself within half a minute, whatever happens.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "examples/demo_verdict.h"
#include "simba/simba.h"

namespace {

using namespace std::chrono_literals;
using simba::BootClock;
using simba::milliseconds;
using simba::Token;
using simba::demo::Line;

constexpr const char* kMutex = "demo";
constexpr milliseconds kTtl{2000};
constexpr milliseconds kTransition{2000};
constexpr milliseconds kPeriod{400};
constexpr milliseconds kWork{50};
constexpr auto kPatience = 25s;  // with the whole story, which takes about seven

simba::ContendOptions lease() {
  simba::ContendOptions options;
  options.ttl = kTtl;
  options.transition = kTransition;
  options.jitter = {milliseconds{0}, milliseconds{200}};
  options.renew_at = 0.2;  // early: a machine that stands still does not spoil the story
  return options;
}

std::atomic<int> told_to_stop{0};  // by this signal

void stop_on(int signal) {
  std::signal(signal, [](int by) { told_to_stop = by; });
}

// --- a contender --------------------------------------------------------------------------------

std::int64_t now() { return BootClock::now().time_since_epoch().count(); }

void say(int pipe, const Line& line) {
  if (write(pipe, &line, sizeof line) != static_cast<ssize_t>(sizeof line)) std::_Exit(1);
}

// Leads with scheduled work, and says when it began and ended.
int contend(const std::string& url, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  stop_on(SIGTERM);
  simba::ClientOptions options;
  options.contend = lease();
  const simba::Client client = simba::connect(url, options);
  Token announced = 0;
  const auto work = [&](const simba::Term& term) {
    const std::int64_t begin = now();
    const bool first = std::exchange(announced, term.token()) != term.token();
    if (!first) std::this_thread::sleep_for(kWork);
    say(pipe,
        {first ? Line::Kind::kAcquired : Line::Kind::kTick, getpid(), term.token(), begin, now()});
  };
  simba::Scheduler scheduler{client, kMutex, simba::ScheduleConfig::rate(0ms, kPeriod), work};
  scheduler.start();
  while (told_to_stop == 0) std::this_thread::sleep_for(2ms);
  const bool led = scheduler.is_owner();
  const std::int64_t begin = now();
  scheduler.stop();
  if (led) say(pipe, {Line::Kind::kReleased, getpid(), announced, begin, begin});
  return 0;
}

// --- the narrator -------------------------------------------------------------------------------

class Narrator {
 public:
  explicit Narrator(std::string url)
      : url_(std::move(url)), color_(isatty(STDOUT_FILENO) == 1 && !std::getenv("NO_COLOR")) {
    if (pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::perror("pipe");
  }
  ~Narrator() {
    for (const auto& [pid, name] : names_) kill(pid, SIGKILL);
    while (wait(nullptr) > 0) {
    }
  }
  Narrator(const Narrator&) = delete;
  Narrator& operator=(const Narrator&) = delete;

  int tell();

 private:
  void hire(char name);
  std::optional<Line> listen();
  std::optional<Line> await(Line::Kind kind, Token above);
  void print(const char* color, const std::string& text) const;
  std::string name_of(pid_t pid) const {
    return names_.count(pid) ? std::string(1, names_.at(pid)) : "?";
  }
  static double ms(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }
  int fail(const std::string& why) const {
    if (told_to_stop != 0) return 128 + told_to_stop;
    print("31", "FAILED: " + why);
    return 1;
  }

  const std::string url_;
  const bool color_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::array<int, 2> pipe_{};
  std::map<pid_t, char> names_;
  simba::demo::Verdict verdict_;
};

void Narrator::hire(char name) {
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    fcntl(pipe_[1], F_SETFL, 0);
    std::_Exit(contend(url_, pipe_[1]));
  }
  names_[pid] = name;
}

void Narrator::print(const char* color, const std::string& text) const {
  const double at =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  if (color_) {
    std::printf("\033[2m%7.3f s\033[0m  \033[%sm%s\033[0m\n", at, color, text.c_str());
  } else {
    std::printf("%7.3f s  %s\n", at, text.c_str());
  }
  std::fflush(stdout);
}

std::optional<Line> Narrator::listen() {
  while (told_to_stop == 0 && std::chrono::steady_clock::now() < began_ + kPatience) {
    Line line{};
    if (read(pipe_[0], &line, sizeof line) == static_cast<ssize_t>(sizeof line)) {
      verdict_.hear(line);
      return line;
    }
    std::this_thread::sleep_for(2ms);
  }
  return std::nullopt;
}

std::optional<Line> Narrator::await(Line::Kind kind, Token above) {
  int ticks = 0;
  while (const std::optional<Line> line = listen()) {
    if (line->kind == Line::Kind::kTick && ++ticks <= 3) {
      print("2", "  " + name_of(line->pid) + " works as the leader");
    }
    if (line->kind == kind && line->token > above) return line;
  }
  return std::nullopt;
}

int Narrator::tell() {
  std::printf(
      "Three processes contend for one mutex in a SQLite file. ttl %lld ms, transition %lld "
      "ms.\n\n",
      static_cast<long long>(kTtl.count()), static_cast<long long>(kTransition.count()));
  for (const char name : {'A', 'B', 'C'}) hire(name);

  const auto first = await(Line::Kind::kAcquired, 0);
  if (!first) return fail("nobody became the leader");
  print("32", name_of(first->pid) + " leads, token " + std::to_string(first->token));
  std::optional<Line> work = first;
  for (int i = 0; i < 3 && work; ++i) work = await(Line::Kind::kTick, 0);
  if (!work) return fail("the leader did not work");

  const std::int64_t killed = now();
  kill(first->pid, SIGKILL);
  waitpid(first->pid, nullptr, 0);
  print("31", name_of(first->pid) + " is killed (SIGKILL) and cannot say good-bye");
  names_.erase(first->pid);

  const auto second = await(Line::Kind::kAcquired, first->token);
  if (!second) return fail("nobody took over");
  char text[128];
  std::snprintf(text, sizeof text,
                "%s takes over, token %llu, %.0f ms after the kill (the lease was %lld ms)",
                name_of(second->pid).c_str(), static_cast<unsigned long long>(second->token),
                ms(second->begin - killed), static_cast<long long>((kTtl + kTransition).count()));
  print("32", text);
  if (!await(Line::Kind::kTick, 0) || !await(Line::Kind::kTick, 0))
    return fail("the leader did not work");

  kill(second->pid, SIGTERM);
  print("33", name_of(second->pid) + " is asked to stop (SIGTERM) and hands over");
  const std::int64_t asked = BootClock::now().time_since_epoch().count();
  const auto third = await(Line::Kind::kAcquired, second->token);
  if (!third) return fail("nobody took over");
  std::snprintf(text, sizeof text, "%s leads, token %llu, %.0f ms after the request",
                name_of(third->pid).c_str(), static_cast<unsigned long long>(third->token),
                ms(third->begin - asked));
  print("32", text);
  if (!await(Line::Kind::kTick, 0)) return fail("the leader did not work");
  kill(third->pid, SIGTERM);
  if (!await(Line::Kind::kReleased, second->token)) return fail("the last leader did not stop");
  print("2", name_of(third->pid) + " stops");

  if (const auto objection = verdict_.objection()) return fail(*objection);
  std::printf("\nThree leaders, one at a time, each with a larger token.\n");
  return 0;
}

std::filesystem::path private_directory() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base && *base ? base : "/tmp") + "/simba-demo-XXXXXX";
  if (!mkdtemp(name.data())) {
    std::perror(name.c_str());
    std::_Exit(1);
  }
  return name;
}

}  // namespace

int main() {
  // What it made is cleared away then too.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) stop_on(signal);
  const std::filesystem::path directory = private_directory();
  int status = 1;
  try {
    status = Narrator("sqlite:" + (directory / "locks.db").string()).tell();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simba_demo: %s\n", error.what());
  }
  std::filesystem::remove_all(directory);
  return status;
}
