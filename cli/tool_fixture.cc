#include "cli/tool_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <system_error>
#include <thread>

namespace simba::cli {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

int open_or_die(const fs::path& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) _exit(99);
  return fd;
}

std::vector<char*> pointers(const Words& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

// The fields after the name: state, parent, ...
std::string stat_of(pid_t pid) {
  const std::string all = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t end = all.rfind(") ");
  return end == all.npos ? "" : all.substr(end + 2);
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();  // does not throw when a process ends while its /proc file is read
  return text.str();
}

bool is_alive(pid_t pid) {
  const std::string stat = stat_of(pid);
  return !stat.empty() && stat[0] != 'Z' && stat[0] != 'X';
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const std::string stat = stat_of(std::stoi(name));
    if (stat.size() > 2 && std::stoi(stat.substr(2)) == pid) found.push_back(std::stoi(name));
  }
  return found;
}

Process::Process(const Words& command, const Setting& setting) {
  static std::atomic<int> count{0};
  const std::string number = std::to_string(++count);
  out_ = setting.directory / ("out." + number);
  err_ = setting.directory / ("err." + number);
  const fs::path in = setting.directory / ("in." + number);
  std::ofstream(in) << setting.input;
  Words variables = setting.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("SIMBA_")) variables.emplace_back(*variable);
  }
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> environment = pointers(variables);
  pid_ = fork();
  // What is sent to the process -1 goes to all there are.
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ != 0) return;
  if (setting.own_session) setsid();
  if (chdir(setting.directory.c_str()) != 0) _exit(99);
  dup2(open_or_die(setting.input.empty() ? "/dev/null" : in, O_RDONLY), STDIN_FILENO);
  dup2(open_or_die(out_, O_WRONLY | O_CREAT | O_TRUNC), STDOUT_FILENO);
  dup2(open_or_die(err_, O_WRONLY | O_CREAT | O_TRUNC), STDERR_FILENO);
  execve(arguments[0], arguments.data(), environment.data());
  _exit(99);
}

Process::~Process() {
  if (pid_ <= 0 || status_) return;
  kill(pid_, SIGKILL);
  kill(pid_, SIGCONT);
  waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  if (!status_) kill(pid_, number);  // what was reaped has left its number to others
}

bool Process::has_ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

int Process::wait() {
  if (!eventually([&] { return has_ended(); })) return -1;
  return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
}

ToolTest::ToolTest() {
  std::string name = (fs::temp_directory_path() / "simba-tool-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = name;
}

ToolTest::~ToolTest() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

std::string ToolTest::tool() { return SIMBA_TOOL; }

std::unique_ptr<Process> ToolTest::start(const Words& arguments, Process::Setting setting) const {
  Words command{tool()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  setting.directory = directory_;
  setting.environment.push_back("SIMBA_STORE=" + url());
  return std::make_unique<Process>(command, setting);
}

std::unique_ptr<Process> ToolTest::start_script(const Words& arguments, const std::string& script,
                                                Process::Setting setting) const {
  Words command{"run"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--", "sh", "-c", script});
  return start(command, std::move(setting));
}

ToolTest::Result ToolTest::simba(const Words& arguments, Process::Setting setting) const {
  const auto process = start(arguments, std::move(setting));
  const int code = process->wait();
  return {code, process->out(), process->err()};
}

ToolTest::Result ToolTest::in_a_calm_moment(const std::function<Result()>& ask) {
  static const std::regex slow("warning +(answers|clock|wake-ups)");
  Result result = ask();
  for (int i = 0; i < 4 && std::regex_search(result.out, slow); ++i) result = ask();
  return result;
}

pid_t ToolTest::pid_in(const std::string& name) const {
  pid_t pid = 0;
  eventually([&] {
    const std::string text = read_file(file(name));
    if (!text.ends_with('\n')) return false;
    pid = std::stoi(text);
    return true;
  });
  return pid;
}

pid_t ToolTest::guardian_of(const Process& process) const {
  const std::vector<pid_t> children = children_of(process.pid());
  return children.size() == 1 ? children.front() : 0;
}

std::unique_ptr<Process> ToolTest::start_successor(const std::string& name) const {
  return start_script({"x"},
                      "if kill -0 $(cat " + name + "); then echo overlap; else echo alone; fi");
}

void ToolTest::evict(const std::string& mutex, Eviction how) const {
  Client client = connect(url());
  const Observation seen = client.observe(mutex);
  if (seen.owner.id.empty()) return;  // it lost the mutex before
  client.evict(mutex, seen.owner.id, seen.owner.token, how);
}

}  // namespace simba::cli
