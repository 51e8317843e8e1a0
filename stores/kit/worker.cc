#include "stores/kit/worker.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "simba/error.h"
#include "stores/kit/forked.h"
#include "stores/kit/signals_blocked.h"
#include "stores/kit/this_process.h"

namespace simba::kit {
namespace {

constexpr std::chrono::seconds kPatience{2};

timespec as_timespec(nanoseconds length) {
  const auto count = std::max<nanoseconds::rep>(length.count(), 0);
  return {count / 1'000'000'000, count % 1'000'000'000};
}

}  // namespace

StopSignal::StopSignal() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ >= 0) return;
  throw Error(Errc::kUnreachable, "there is no file descriptor left for a thread of the library: " +
                                      std::generic_category().message(errno));
}

StopSignal::~StopSignal() { close(descriptor_); }

void StopSignal::request() noexcept {
  requested_.store(true, std::memory_order_release);
  eventfd_write(descriptor_, 1);
}

bool StopSignal::pause(nanoseconds length) const noexcept {
  pollfd source{descriptor_, POLLIN, 0};
  const timespec time = as_timespec(length);
  return ppoll(&source, 1, &time, nullptr) == 0;
}

struct Worker::State {
  const ThisProcess process;
  StopSignal stop;
  std::mutex guard;
  std::condition_variable ended;
  bool running = true;  // guarded by guard
  std::thread thread;
};

Worker::Worker(const std::string& name, Task task) : state_(std::make_shared<State>()) {
  const SignalsBlocked blocked;
  try {
    state_->thread = std::thread([state = state_, name, task = std::move(task)]() mutable {
      pthread_setname_np(pthread_self(), name.c_str());
      task(state->stop);
      task = nullptr;  // what it owns goes before anybody hears of the end
      const std::lock_guard lock(state->guard);
      state->running = false;
      state->ended.notify_all();
    });
  } catch (const std::system_error& error) {
    throw Error(Errc::kUnreachable, std::string("no thread can be started: ") + error.what());
  }
}

Worker::~Worker() {
  if (!state_->process.is_still()) {
    leave_alone(std::move(state_));
    return;
  }
  state_->stop.request();
  const bool is_self = state_->thread.get_id() == std::this_thread::get_id();
  std::unique_lock lock(state_->guard);
  if (!is_self && state_->ended.wait_for(lock, kPatience, [&] { return !state_->running; })) {
    lock.unlock();
    state_->thread.join();
  } else {
    state_->thread.detach();  // it ends by itself
  }
}

const StopSignal& Worker::stop() const { return state_->stop; }

bool wait_for(int descriptor, short events, LocalTime deadline, const StopSignal* stop) noexcept {
  return wait_for(descriptor, events, deadline, stop ? stop->descriptor() : -1);
}

bool wait_for(int descriptor, short events, LocalTime deadline, int interrupt) noexcept {
  pollfd sources[] = {{descriptor, events, 0}, {interrupt, POLLIN, 0}};
  while (true) {
    const nanoseconds left = deadline - BootClock::now();
    const timespec time = as_timespec(left);
    const bool for_ever = deadline == LocalTime::max();
    const int ready = ppoll(sources, interrupt >= 0 ? 2 : 1, for_ever ? nullptr : &time, nullptr);
    if (ready > 0) return sources[1].revents == 0;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace simba::kit
