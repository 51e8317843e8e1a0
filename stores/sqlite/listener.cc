#include "stores/sqlite/listener.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "stores/kit/signals_blocked.h"
#include "stores/sqlite/forks.h"

namespace simba::sqlite {

// In a forked child it ends without a trace: a lock may have been held at the fork.
class Listener::BellWatch : public Watch {
 public:
  BellWatch(std::shared_ptr<Listener> listener, unsigned bell)
      : listener_(std::move(listener)), bell_(bell) {}
  ~BellWatch() override {
    if (fork_count() != listener_->forks_) {
      static_cast<void>(inner_.release());
      return;
    }
    inner_.reset();
    listener_->leave(*this);
  }
  void begin(std::unique_ptr<Watch> inner) { inner_ = std::move(inner); }
  bool is_live() const override { return listener_->bells_[bell_].live; }
  bool listen(int interrupt, LocalTime until) override {
    return listener_->listen(interrupt, until);
  }
  void need_reader(bool needed) override { listener_->rely(*this, needed); }

 private:
  friend class Listener;
  const std::shared_ptr<Listener> listener_;
  const unsigned bell_;
  bool relies_ = false;  // guarded by the listener's turns_
  std::unique_ptr<Watch> inner_;
};

// A turn, which ends also where what is woken throws.
class Listener::Listening {
 public:
  explicit Listening(Listener& listener) : listener_(listener) {}
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() {
    const std::lock_guard lock(listener_.turns_);
    listener_.listened_ = false;
  }

 private:
  Listener& listener_;
};

namespace {

constexpr std::uint32_t kRung = IN_ACCESS | IN_MODIFY;
// The file under the bell's name may be another one now.
constexpr std::uint32_t kMoved = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED;

}  // namespace

Listener::Listener() : forks_(fork_count()) {}

Listener::~Listener() {
  if (fork_count() != forks_) {
    static_cast<void>(thread_.release());  // it runs in the parent
    return;
  }
  if (thread_) {
    {
      const std::lock_guard lock(turns_);
      stops_ = true;
    }
    eventfd_write(nudge_, 1);
    thread_->join();
  }
  if (inotify_ >= 0) close(inotify_);
  if (nudge_ >= 0) close(nudge_);
}

void Listener::bind(const std::filesystem::path& directory) {
  {
    const std::lock_guard lock(mutex_);
    directory_ = directory;
    for (unsigned bell = 0; bell < Bells::kCount; ++bell) {
      disarm(bell);
      if (bells_[bell].count > 0) arm(bell);
    }
  }
  for (const Bell& bell : bells_) bell.watchers->wake_all();
}

std::unique_ptr<Watch> Listener::add(std::string_view mutex, std::function<void()> wake) {
  const unsigned number = Bells::of(mutex);
  Bell& bell = bells_[number];
  {
    const std::lock_guard lock(mutex_);
    if (!start()) return nullptr;
    ++bell.count;
    if (!bell.live) arm(number);
  }
  auto watch = std::make_unique<BellWatch>(shared_from_this(), number);
  rely(*watch, true);
  watch->begin(kit::Watchers::add(bell.watchers, mutex, std::move(wake)));
  return watch;
}

void Listener::leave(BellWatch& watch) {
  rely(watch, false);
  const std::lock_guard lock(mutex_);
  if (--bells_[watch.bell_].count == 0) disarm(watch.bell_);
}

void Listener::rely(BellWatch& watch, bool relies) {
  const std::lock_guard lock(turns_);
  if (std::exchange(watch.relies_, relies) == relies) return;
  relies ? ++relying_ : --relying_;
  if (relies) stand_aside(false);
}

bool Listener::listen(int interrupt, LocalTime until) {
  if (!begin_to_listen()) return false;
  const Listening turn(*this);
  pollfd sources[] = {{inotify_, POLLIN, 0}, {interrupt, POLLIN, 0}};
  const auto left = std::chrono::ceil<milliseconds>(until - BootClock::now());
  const auto timeout = std::clamp<milliseconds>(left, milliseconds{0}, std::chrono::hours{1});
  const bool forever = until == LocalTime::max();
  if (poll(sources, 2, forever ? -1 : static_cast<int>(timeout.count())) > 0 &&
      sources[0].revents != 0) {
    hear();
  }
  return true;
}

// Who listens for others too would have to wake the reader each time it leaves.
bool Listener::begin_to_listen() {
  const std::lock_guard lock(turns_);
  if (listened_ || relying_ > 0) return false;
  listened_ = true;
  stand_aside(true);
  return true;
}

void Listener::stand_aside(bool aside) {
  if (std::exchange(aside_, aside) != aside) eventfd_write(nudge_, 1);
}

void Listener::wake(std::string_view mutex, unsigned bell) { bells_[bell].watchers->wake(mutex); }

bool Listener::start() try {
  if (thread_) return true;
  if (inotify_ < 0) inotify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (nudge_ < 0) nudge_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (inotify_ < 0 || nudge_ < 0) return false;
  const kit::SignalsBlocked blocked;
  thread_ = std::make_unique<std::thread>([this] { run(); });
  return true;
} catch (const std::system_error&) {
  return false;
}

void Listener::arm(unsigned bell) {
  bool will_ring = Bells::hang(directory_, bell);
  // Somebody may have put another file there since.
  if (watch_waited()) will_ring = Bells::hang(directory_, bell);
  listen(bell);
  bells_[bell].live = will_ring && waited_ >= 0 && bells_[bell].watch >= 0;
}

// The same file gives the same watch again.
void Listener::listen(unsigned bell) {
  const int before = bells_[bell].watch;
  bells_[bell].watch = inotify_add_watch(inotify_, Bells::file(directory_, bell).c_str(),
                                         kRung | (kMoved & IN_ALL_EVENTS));
  if (before >= 0 && before != bells_[bell].watch) inotify_rm_watch(inotify_, before);
}

// With the file go the marks of all bells: nobody rings them, until each has been hung again.
bool Listener::watch_waited() {
  const int before = waited_;
  waited_ = inotify_add_watch(inotify_, Bells::waited(directory_).c_str(), kMoved & IN_ALL_EVENTS);
  if (waited_ == before) return false;
  if (before >= 0) {
    for (Bell& bell : bells_) bell.live = false;
    inotify_rm_watch(inotify_, before);
    gone_ = before;
  }
  return true;
}

void Listener::disarm(unsigned bell) {
  if (bells_[bell].watch >= 0) inotify_rm_watch(inotify_, bells_[bell].watch);
  bells_[bell].watch = -1;
  bells_[bell].live = false;
}

void Listener::run() {
  pthread_setname_np(pthread_self(), "simba-sqlite");
  pollfd sources[] = {{nudge_, POLLIN, 0}, {inotify_, POLLIN, 0}};
  bool aside = false;
  while (true) {
    if (poll(sources, aside ? 1 : 2, -1) < 0) continue;
    if (sources[0].revents != 0) {
      eventfd_t nudges = 0;
      eventfd_read(nudge_, &nudges);
      const std::lock_guard lock(turns_);
      if (stops_) return;
      aside = aside_;
    } else {
      hear();
    }
  }
}

void Listener::hear() {
  std::uint64_t rang = read_events();
  for (unsigned bell = 0; rang != 0; ++bell, rang >>= 1) {
    if ((rang & 1) != 0) bells_[bell].watchers->wake_all();
  }
}

std::uint64_t Listener::read_events() {
  alignas(inotify_event) char buffer[4096];
  std::uint64_t rang = 0;
  const ssize_t size = read(inotify_, buffer, sizeof buffer);
  const std::lock_guard lock(mutex_);
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    rang |= note_event(event->wd, event->mask);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  return rang;
}

std::uint64_t Listener::note_event(int watch, std::uint32_t mask) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  if ((mask & IN_Q_OVERFLOW) != 0) return kAll;
  if (watch == waited_ && !watch_waited()) return 0;
  if (watch == gone_) return kAll;
  for (unsigned bell = 0; bell < Bells::kCount; ++bell) {
    if (bells_[bell].watch != watch) continue;
    if ((mask & kMoved) != 0) {
      // Not made again here: whoever deletes everything shall come to an end.
      listen(bell);
      bells_[bell].live = bells_[bell].live && bells_[bell].watch >= 0;
    }
    return std::uint64_t{1} << bell;
  }
  return 0;  // of a watch that was taken off
}

}  // namespace simba::sqlite
