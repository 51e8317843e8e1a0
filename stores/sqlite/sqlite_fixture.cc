#include "stores/sqlite/sqlite_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "testing/fork.h"

namespace simba::sqlite {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    return error.code().message() + ": " + error.what();
  }
}

std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = testing::fork_program();
  if (pid == 0) {
    const std::string result = body();
    static_cast<void>(!write(ends[1], result.data(), result.size()));
    _exit(0);
  }
  close(ends[1]);
  std::string result;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
    result.append(buffer, static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? result : "died";
}

std::string as_ordinary_user(const std::filesystem::path& directory,
                             const std::function<std::string()>& body) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) return in_child(body);
  std::error_code missing;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, missing)) {
    static_cast<void>(!chown(entry.path().c_str(), kNobody, kNobody));
  }
  static_cast<void>(!chown(directory.c_str(), kNobody, kNobody));
  return in_child([&]() -> std::string {
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) return "cannot change the user";
    return body();
  });
}

Child::Child(const std::function<void()>& body) : pid_(testing::fork_program()) {
  if (pid_ != 0) return;
  try {
    body();
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    _exit(1);
  }
}

Child::~Child() {
  kill();
  join();
}

void Child::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

int Child::join() {
  if (pid_ <= 0) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Signal::Signal() {
  if (pipe(ends_) != 0) std::abort();
}

Signal::~Signal() {
  close(ends_[0]);
  close(ends_[1]);
}

void Signal::give() const { static_cast<void>(!write(ends_[1], "x", 1)); }

void Signal::wait() const {
  char byte = 0;
  static_cast<void>(!read(ends_[0], &byte, 1));
}

}  // namespace simba::sqlite
