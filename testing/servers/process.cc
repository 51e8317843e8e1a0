#include "testing/servers/process.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace simba::servers {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The death signal comes when the *thread* that forked ends, so one thread that never does forks
// for everybody.
class Forker {
 public:
  static Forker& the() {
    static std::mutex guard;
    static Forker* forker = nullptr;  // never destroyed: its thread uses it to the end
    static pid_t process = 0;         // a forked process has the object, but not its thread
    const std::lock_guard lock(guard);
    if (process != getpid()) forker = new Forker;
    process = getpid();
    return *forker;
  }

  pid_t run(std::function<pid_t()> fork) {
    std::packaged_task<pid_t()> task(std::move(fork));
    std::future<pid_t> pid = task.get_future();
    {
      const std::lock_guard lock(guard_);
      tasks_.push_back(std::move(task));
    }
    more_.notify_one();
    return pid.get();
  }

 private:
  Forker() {
    std::thread([this] { work(); }).detach();
  }

  [[noreturn]] void work() {
    for (;;) {
      std::unique_lock lock(guard_);
      more_.wait(lock, [this] { return !tasks_.empty(); });
      std::packaged_task<pid_t()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex guard_;
  std::condition_variable more_;
  std::deque<std::packaged_task<pid_t()>> tasks_;  // guarded by guard_
};

// Everything the child needs, made before the fork: after it only system calls are safe.
struct Prepared {
  std::string program;
  std::vector<std::string> words;
  std::vector<std::string> environment;
  std::vector<char*> argv, envp;
  std::string directory, log;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  bool changes_user = false;
  int death_signal = SIGKILL;
};

void become(Prepared& prepared, const std::string& user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (!found) throw std::runtime_error("there is no user '" + user + "'");
  if (entry.pw_uid == geteuid()) return;
  prepared.changes_user = true;
  prepared.uid = entry.pw_uid;
  prepared.gid = entry.pw_gid;
  int count = 64;
  prepared.groups.resize(static_cast<std::size_t>(count));
  if (getgrouplist(user.c_str(), entry.pw_gid, prepared.groups.data(), &count) < 0) count = 1;
  prepared.groups.resize(static_cast<std::size_t>(count));
}

// What the loader takes along may lie where that user cannot look, and then it goes without a word.
void bring_along(Prepared& prepared) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  for (std::string& entry : prepared.environment) {
    if (!entry.starts_with(kPreload)) continue;
    const std::filesystem::path from = entry.substr(kPreload.size());
    const std::filesystem::path to = std::filesystem::path(prepared.directory) / from.filename();
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::skip_existing);
    std::filesystem::permissions(to, std::filesystem::perms{0755});
    entry = std::string(kPreload) + to.string();
  }
}

Prepared prepare(const Command& command) {
  Prepared prepared;
  prepared.program = find_program({command.words.at(0)});
  if (prepared.program.empty()) {
    throw std::runtime_error("the program '" + command.words[0] + "' was not found");
  }
  prepared.words = command.words;
  prepared.environment = command.environment;
  prepared.directory = command.directory.empty() ? "/" : command.directory.string();
  prepared.log = command.log.empty() ? "/dev/null" : command.log.string();
  prepared.death_signal = command.death_signal;
  if (!command.user.empty()) become(prepared, command.user);
  if (prepared.changes_user) bring_along(prepared);
  for (char** each = environ; *each; ++each) prepared.environment.emplace_back(*each);
  return prepared;
}

[[noreturn]] void run_child(const Prepared& prepared, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  const int log = open(prepared.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  dup2(log, 1);
  dup2(log, 2);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  if (prepared.changes_user && (setgroups(prepared.groups.size(), prepared.groups.data()) != 0 ||
                                setgid(prepared.gid) != 0 || setuid(prepared.uid) != 0)) {
    _exit(126);
  }
  // After the change of user, which would have cleared it.
  prctl(PR_SET_PDEATHSIG, prepared.death_signal);
  if (getppid() != parent || chdir(prepared.directory.c_str()) != 0) _exit(126);
  execve(prepared.program.c_str(), prepared.argv.data(), prepared.envp.data());
  _exit(127);
}

}  // namespace

Process::Process(const Command& command) {
  Prepared prepared = prepare(command);
  for (std::string& word : prepared.words) prepared.argv.push_back(word.data());
  prepared.argv.push_back(nullptr);
  for (std::string& entry : prepared.environment) prepared.envp.push_back(entry.data());
  prepared.envp.push_back(nullptr);
  pid_ = Forker::the().run([&prepared, parent = getpid()] {
    const pid_t child = fork();
    if (child == 0) run_child(prepared, parent);
    return child;
  });
  if (pid_ < 0) throw std::runtime_error("fork failed: " + prepared.program);
}

Process::~Process() { kill(); }

bool Process::reap(int options) {
  if (gone_) return true;
  int status = 0;
  pid_t done = -1;
  do done = waitpid(pid_, &status, options);
  while (done < 0 && errno == EINTR);
  gone_ = done != 0;
  if (done == pid_) status_ = status;
  return gone_;
}

bool Process::is_running() { return !reap(WNOHANG); }

void Process::signal(int number) const {
  if (!gone_) ::kill(pid_, number);
}

// On a busy machine its threads run on until the first of them has heard of it.
bool Process::pause(std::chrono::milliseconds patience) const {
  signal(SIGSTOP);
  const auto until = std::chrono::steady_clock::now() + patience;
  for (siginfo_t info{}; !gone_; std::this_thread::sleep_for(1ms)) {
    const int options = WSTOPPED | WEXITED | WNOWAIT | WNOHANG;
    const int done = waitid(P_PID, static_cast<id_t>(pid_), &info, options);
    if (done != 0 || info.si_pid != 0) break;
    if (std::chrono::steady_clock::now() >= until) return false;
  }
  return true;
}

bool Process::wait(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (!reap(WNOHANG)) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

bool Process::stop(int number, std::chrono::milliseconds patience) {
  signal(number);
  signal(SIGCONT);  // one that was stopped could not end
  if (wait(patience)) return true;
  kill();
  return false;
}

void Process::kill() {
  signal(SIGKILL);
  reap(0);
}

std::string find_program(const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    if (candidate.find('/') != std::string::npos) {
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
      continue;
    }
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
      std::string full = std::string(folder) + "/" + candidate;
      if (access(full.c_str(), X_OK) == 0) return full;
    }
  }
  return {};
}

}  // namespace simba::servers
