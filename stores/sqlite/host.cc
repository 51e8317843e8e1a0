#include "stores/sqlite/host.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "simba/error.h"

namespace simba::sqlite {
namespace {

timespec read_clock(clockid_t clock) noexcept {
  timespec ts{};
  clock_gettime(clock, &ts);
  return ts;
}

std::int64_t read_boot_ms() {
  const timespec ts = read_clock(CLOCK_BOOTTIME);
  return ts.tv_sec * 1'000 + ts.tv_nsec / 1'000'000;
}

std::int64_t read_wall_us() {
  const timespec ts = read_clock(CLOCK_REALTIME);
  return ts.tv_sec * 1'000'000 + ts.tv_nsec / 1'000;
}

// A few lines of the kernel; "" where there is no such file. A stream would cost a process that
// does nothing else a tenth of a millisecond.
std::string read_small_file(const std::filesystem::path& file) {
  std::string text(512, '\0');
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t size = descriptor >= 0 ? read(descriptor, text.data(), text.size()) : 0;
  if (descriptor >= 0) close(descriptor);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// LXC and systemd-nspawn lay a file over the kernel's, with another id in each container: what is
// locked there would look like an earlier boot's to the host and to every other container.
void refuse_own_boot_id(const std::filesystem::path& file) {
  struct statfs info {};
  if (statfs(file.c_str(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC) return;
  throw Error(Errc::kMisconfigured,
              "sqlite: " + file.string() +
                  " is not the kernel's: this container has a boot id of its own, so that the host "
                  "and other containers would take over what is locked here; take away what is "
                  "mounted there (umount " +
                  file.string() + "), or use a store on a server");
}

std::string read_boot_id(const std::filesystem::path& file) {
  const std::string text = read_small_file(file);
  std::string id = text.substr(0, text.find('\n'));
  if (id.size() < 32 || id.size() > 64) {
    throw Error(
        Errc::kMisconfigured,
        "sqlite: the boot id cannot be read from " + file.string() +
            "; without it a lease of an earlier boot looks like one of this boot: mount /proc");
  }
  refuse_own_boot_id(file);
  return id;
}

// A kernel without time namespaces has no such file, and nothing is shifted.
void refuse_shifted_clock(const std::filesystem::path& file) {
  const std::string text = read_small_file(file);
  const std::size_t line = text.find("boottime");
  long long seconds = 0;
  long long rest = 0;
  if (line == text.npos ||  // NOLINTNEXTLINE(cert-err34-c): the kernel wrote it
      std::sscanf(text.c_str() + line, "boottime %lld %lld", &seconds, &rest) != 2) {
    return;
  }
  if (seconds == 0 && rest == 0) return;
  throw Error(Errc::kMisconfigured,
              "sqlite: this process is in a time namespace that shifts CLOCK_BOOTTIME by " +
                  std::to_string(seconds) + " s (" + file.string() +
                  "); leases of other processes cannot be compared: leave the namespace");
}

}  // namespace

Host Host::local(const HostFiles& files) {
  refuse_shifted_clock(files.time_offsets);
  return {read_boot_id(files.boot_id), read_boot_ms, read_wall_us};
}

LocalTime local_now() noexcept {
  const timespec ts = read_clock(CLOCK_BOOTTIME);
  return LocalTime{std::chrono::seconds{ts.tv_sec} + nanoseconds{ts.tv_nsec}};
}

}  // namespace simba::sqlite
