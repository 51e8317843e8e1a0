#include "benchmarks/raw_bell.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace simba::bench {

RawBell::RawBell(const std::string& file)
    : file_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOATIME, 0600)),
      notify_(inotify_init1(IN_CLOEXEC)) {
  if (file_ < 0 || notify_ < 0 || pwrite(file_, "\n", 1, 0) != 1) {
    std::perror("simba_bench: the raw loop cannot make a bell");
    std::exit(2);
  }
  inotify_add_watch(notify_, file.c_str(), IN_ACCESS);
}

RawBell::~RawBell() {
  close(file_);
  close(notify_);
}

void RawBell::ring() {
  char byte = 0;
  static_cast<void>(!pread(file_, &byte, 1, 0));
}

void RawBell::wait() {
  char events[4096];
  static_cast<void>(!read(notify_, events, sizeof events));
}

}  // namespace simba::bench
