#include "core/thread_executor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/batcher.h"
#include "core/fork.h"
#include "core/random.h"
#include "core/thread_pool.h"

namespace simba::core {
namespace {

int checked(int result, const char* what) {
  if (result >= 0) return result;
  throw Error(Errc::kMisconfigured,
              std::string(what) + " failed: " + std::generic_category().message(errno));
}

class Descriptor {
 public:
  Descriptor(int fd, const char* what) : fd_(checked(fd, what)) {}
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Calls somebody back at a time on CLOCK_BOOTTIME. Shared between its thread and its owner.
class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  explicit Dispatcher(std::function<void()> on_alarm) : on_alarm_(std::move(on_alarm)) {
    watch(timer_.get());
    watch(bell_.get());
  }

  void set(LocalTime at) {
    const std::lock_guard lock(guard_);
    if (closed_ || at >= armed_) return;
    arm(at);
  }

  // Throws where the system gives no thread: without a watchdog there is no lease.
  void open() {
    const std::lock_guard lock(guard_);
    thread_ = quiet_thread("simba-dispatch", [self = shared_from_this()] { self->run(); });
  }

  void close() {
    std::thread thread;
    {
      const std::lock_guard lock(guard_);
      closed_ = true;
      const std::uint64_t one = 1;
      checked(static_cast<int>(::write(bell_.get(), &one, sizeof one)), "eventfd");
      thread = std::move(thread_);
    }
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();  // what an alarm sets off may end with the last handle and lead here
    } else if (thread.joinable()) {
      thread.join();
    }
  }

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    checked(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }

  void arm(LocalTime at) {  // needs guard_
    armed_ = at;
    // Zero would disarm: the past is as good as one nanosecond after boot.
    const auto since_boot = std::max(at.time_since_epoch(), nanoseconds{1});
    itimerspec spec{};
    spec.it_value.tv_sec = since_boot.count() / 1'000'000'000;
    spec.it_value.tv_nsec = since_boot.count() % 1'000'000'000;
    checked(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr), "timerfd_settime");
  }

  void run() {
    std::unique_lock lock(guard_);
    while (!closed_) {
      lock.unlock();
      std::array<epoll_event, 2> events{};
      epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      lock.lock();
      if (closed_ || armed_ > BootClock::now()) continue;
      std::uint64_t expirations = 0;
      static_cast<void>(::read(timer_.get(), &expirations, sizeof expirations));
      armed_ = LocalTime::max();
      lock.unlock();
      on_alarm_();
      lock.lock();
    }
  }

  const std::function<void()> on_alarm_;
  const Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC), "epoll_create1"};
  const Descriptor timer_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                          "timerfd_create"};
  const Descriptor bell_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"};
  std::mutex guard_;
  LocalTime armed_ = LocalTime::max();  // guarded by guard_
  std::thread thread_;                  // guarded by guard_
  bool closed_ = false;                 // guarded by guard_
};

class ThreadExecutor : public Executor {
 public:
  ~ThreadExecutor() override { shut_down(); }

  LocalTime now() const noexcept override { return BootClock::now(); }
  std::uint64_t random() override { return random64(); }

  void start(std::function<void()> on_alarm) override {
    dispatcher_ = std::make_shared<Dispatcher>(std::move(on_alarm));
    for (ThreadPool* pool : {&keep_, &ask_, &callbacks_, &revokers_}) pool->open();
    dispatcher_->open();
  }
  void set_alarm(LocalTime at) override { dispatcher_->set(at); }

  void call(Lane lane, std::shared_ptr<StoreCall> call) override {
    ThreadPool& pool = lane == Lane::kKeep ? keep_ : ask_;
    pool.submit([call = std::move(call)] {
      call->send();
      call->perform();
      call->complete();
    });
  }
  void callback(std::function<void()> task) override { callbacks_.submit(std::move(task)); }
  void revoke(std::function<void()> task) override { revokers_.submit(std::move(task)); }

  void shut_down() override {
    if (fork_epoch() != process_) {
      leave_alone(std::move(dispatcher_));  // its thread stayed in the parent
      return;
    }
    if (closed_.exchange(true)) return;
    if (dispatcher_) dispatcher_->close();
    for (ThreadPool* pool : {&ask_, &keep_, &revokers_, &callbacks_}) pool->close();
  }

 private:
  const std::uint64_t process_ = fork_epoch();
  std::atomic<bool> closed_{false};
  std::shared_ptr<Dispatcher> dispatcher_;
  // The batcher has no more calls under way; a thread that is done with one may still be on its way
  // back.
  ThreadPool keep_{"simba-keep", Batcher::kMostCallsPerLane};
  ThreadPool ask_{"simba-ask", Batcher::kMostCallsPerLane};
  ThreadPool callbacks_{"simba-callback"};
  // Whoever holds lost() may wait for it, also when the client is gone.
  ThreadPool revokers_{"simba-revoke", ThreadPool::kMany, ThreadPool::AtTheEnd::kRunsTasks};
};

}  // namespace

std::shared_ptr<Executor> make_thread_executor() { return std::make_shared<ThreadExecutor>(); }

}  // namespace simba::core
