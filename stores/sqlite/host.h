#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "simba/time.h"

namespace simba::sqlite {

// Where the kernel says which boot this is, and how far a time namespace shifts its clocks.
struct HostFiles {
  std::filesystem::path boot_id = "/proc/sys/kernel/random/boot_id";
  std::filesystem::path time_offsets = "/proc/self/timens_offsets";
};

// The machine as the store sees it: its boot and its clocks. All processes that share a file read
// the same three; that is what makes CLOCK_BOOTTIME a clock of the store.
//
// Threads: any; a plain value.
struct Host {
  std::string boot_id;
  std::int64_t (*boot_ms)();  // decides about leases
  std::int64_t (*wall_us)();  // orders tokens across files, decides nothing else

  // Throws Error (kMisconfigured) where the clock is not the one of the other processes.
  static Host local(const HostFiles& files = {});
};

// For deadlines of calls, which are times of this process.
LocalTime local_now() noexcept;

}  // namespace simba::sqlite
