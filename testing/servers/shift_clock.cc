// Preloaded into a server: its wall clock is off, by SIMBA_TEST_CLOCK_SHIFT seconds, and by the
// nanoseconds in the first eight bytes of the file SIMBA_TEST_CLOCK_FILE, which may change while it
// runs. Other clocks are as they are.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

const std::atomic<std::int64_t>* open_file() {
  const char* name = std::getenv("SIMBA_TEST_CLOCK_FILE");
  if (name == nullptr) return nullptr;
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* page = mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return page == MAP_FAILED ? nullptr : static_cast<const std::atomic<std::int64_t>*>(page);
}

std::int64_t shift() {
  static const std::int64_t fixed = [] {
    const char* text = std::getenv("SIMBA_TEST_CLOCK_SHIFT");
    return text != nullptr ? std::strtoll(text, nullptr, 10) * kSecond : 0;
  }();
  static const std::atomic<std::int64_t>* const file = open_file();
  return fixed + (file != nullptr ? file->load() : 0);
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's are reserved
// names
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* time) noexcept {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    const std::int64_t all = time->tv_sec * kSecond + time->tv_nsec + shift();
    *time = {all / kSecond, all % kSecond};
  }
  return result;
}

extern "C" __attribute__((visibility("default"))) int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1'000};
  return 0;
}

extern "C" __attribute__((visibility("default"))) time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
