#include "torture/heartbeat.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

constexpr nanoseconds kBeat = 10ms;
constexpr nanoseconds kStall = 100ms;

}  // namespace

Heartbeat::Heartbeat() : thread_([this](const std::stop_token& stop) { beat(stop); }) {}

std::vector<Stall> Heartbeat::stalls() const {
  const std::lock_guard lock(guard_);
  return stalls_;
}

void Heartbeat::beat(const std::stop_token& stop) {
  for (LocalTime last = BootClock::now(); !stop.stop_requested();) {
    std::this_thread::sleep_for(kBeat);
    const LocalTime now = BootClock::now();
    if (now - last > kBeat + kStall) {
      const std::lock_guard lock(guard_);
      stalls_.push_back({now, now - last - kBeat});
    }
    last = now;
  }
}

}  // namespace simba::torture
