#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simba/connect.h"

// Drives the built `simba` as a person does: processes, files, signals.
namespace simba::cli {

using Words = std::vector<std::string>;

// Options for a lease that a machine which stands still for seconds does not cost.
inline const Words kLongLease{"--ttl", "2s", "--transition", "8s", "--kill-after", "500ms"};

// True as soon as `condition` is; false when it never came true.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds patience = std::chrono::seconds{60});

std::string read_file(const std::filesystem::path& path);

// Running, not merely waiting to be reaped.
bool is_alive(pid_t pid);
std::vector<pid_t> children_of(pid_t pid);

// A process that is killed when this goes out of scope. What it writes goes to files.
class Process {
 public:
  struct Setting {
    std::filesystem::path directory{};
    std::string input{};  // standard input; none: /dev/null
    Words environment{};  // more variables, NAME=VALUE
    bool own_session = false;
  };
  Process(const Words& command, const Setting& setting);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  bool has_ended();
  // As a shell says it: the exit status, or 128 + the signal; -1 if it does not end.
  int wait();
  std::string out() const { return read_file(out_); }
  std::string err() const { return read_file(err_); }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// A private directory with a store of its own.
class ToolTest : public ::testing::Test {
 public:
  ToolTest();
  ~ToolTest() override;

 protected:
  std::filesystem::path file(const std::string& name) const { return directory_ / name; }
  std::string url() const { return "sqlite:" + file("locks.db").string(); }
  static std::string tool();

  std::unique_ptr<Process> start(const Words& arguments, Process::Setting setting = {}) const;
  // `simba run ARGUMENTS -- sh -c SCRIPT`, in the private directory.
  std::unique_ptr<Process> start_script(const Words& arguments, const std::string& script,
                                        Process::Setting setting = {}) const;

  struct Result {
    int code;
    std::string out, err;
  };
  Result simba(const Words& arguments, Process::Setting setting = {}) const;
  // What `simba doctor` answers as soon as it warns of nothing that takes long. It warns of a
  // machine that stands still, and rightly: a few times it is asked again.
  static Result in_a_calm_moment(const std::function<Result()>& ask);

  // The number a script wrote into a file, once it is there.
  pid_t pid_in(const std::string& name) const;
  // 0: it has none, or not only one. A test asserts that there is one before it sends it a signal.
  pid_t guardian_of(const Process& process) const;
  // Another owner comes, and says whether the process in the file `name` was still alive then.
  std::unique_ptr<Process> start_successor(const std::string& name) const;
  void evict(const std::string& mutex, Eviction how = Eviction::kKeepLease) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace simba::cli
