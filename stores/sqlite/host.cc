#include "stores/sqlite/host.h"

#include <ctime>
#include <fstream>

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

std::string read_boot_id(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string id;
  if (!std::getline(in, id) || id.size() < 32 || id.size() > 64) {
    throw Error(
        Errc::kMisconfigured,
        "sqlite: the boot id cannot be read from " + file.string() +
            "; without it a lease of an earlier boot looks like one of this boot: mount /proc");
  }
  return id;
}

// A kernel without time namespaces has no such file, and nothing is shifted.
void refuse_shifted_clock(const std::filesystem::path& file) {
  std::ifstream in(file);
  for (std::string clock; in >> clock;) {
    std::int64_t seconds = 0;
    std::int64_t rest = 0;
    in >> seconds >> rest;
    if (clock == "boottime" && (seconds != 0 || rest != 0)) {
      throw Error(Errc::kMisconfigured,
                  "sqlite: this process is in a time namespace that shifts CLOCK_BOOTTIME by " +
                      std::to_string(seconds) + " s (" + file.string() +
                      "); leases of other processes cannot be compared: leave the namespace");
    }
  }
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
