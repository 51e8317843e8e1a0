#include "stores/kit/turns.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <exception>
#include <utility>

namespace simba::kit {
namespace {

// How long nobody must have listened until the reader reads again.
constexpr milliseconds kAway{200};
// How often it looks while somebody listens.
constexpr milliseconds kLook{1'000};
// For a reader to stand aside: it may be sending something.
constexpr milliseconds kPatience{100};

int add_to(int epoll, int descriptor) {
  epoll_event event{EPOLLIN, {}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

}  // namespace

Turns::Turns()
    : nudge_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), interrupt_(epoll_create1(EPOLL_CLOEXEC)) {
  if (nudge_ >= 0 && interrupt_ >= 0 && add_to(interrupt_, nudge_) == 0) return;
  close(nudge_);
  close(interrupt_);
  throw Error(Errc::kUnreachable, "there is no file descriptor left for a reader of the library");
}

Turns::~Turns() {
  close(nudge_);
  close(interrupt_);
}

void Turns::nudge() {
  if (!std::exchange(nudged_, true)) eventfd_write(nudge_, 1);
}

void Turns::need_reader(bool needed) {
  const std::lock_guard lock(guard_);
  needed ? ++needing_ : --needing_;
  if (needed && std::exchange(aside_, false)) nudge();
}

// A turn, which ends however it is left: nobody else reads before, and the source waits for it.
class Turns::Listening {
 public:
  explicit Listening(Turns& turns) : turns_(turns) {}
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() { turns_.end_to_listen(trouble); }

  std::optional<Error> trouble;

 private:
  Turns& turns_;
};

bool Turns::listen(int interrupt, LocalTime until, const Source::Hint& hint) {
  std::unique_lock lock(guard_);
  if (!begin_to_listen(lock)) return false;
  LendableSource& source = *source_;
  lock.unlock();
  Listening turn(*this);
  try {
    source.read_until(interrupt, until, hint);
  } catch (const Error& error) {
    turn.trouble = error;
  } catch (const std::exception& error) {  // whatever it was, the next turn is not its own
    turn.trouble = Error(Errc::kUnreachable, error.what());
  } catch (...) {
    turn.trouble = Error(Errc::kUnreachable, "what is no std::exception was thrown");
    throw;
  }
  return !turn.trouble;
}

void Turns::end_to_listen(const std::optional<Error>& trouble) {
  const std::lock_guard lock(guard_);
  reads_ = Who::kNobody;
  left_ = BootClock::now();
  if (trouble) lost_ = trouble;
  if (trouble || needing_ > 0) {
    aside_ = false;
    nudge();
  }
  changed_.notify_all();
}

// Who listens for others too would have to wake the reader each time it leaves.
bool Turns::begin_to_listen(std::unique_lock<std::mutex>& lock) {
  const auto may_listen = [this] {
    return source_ != nullptr && needing_ == 0 && reads_ != Who::kWaiter && !lost_;
  };
  if (!may_listen()) return false;
  aside_ = true;
  left_ = BootClock::now();
  if (reads_ == Who::kReader) nudge();
  changed_.wait_for(lock, kPatience, [&] { return reads_ != Who::kReader; });
  if (!may_listen() || reads_ == Who::kReader) return false;
  reads_ = Who::kWaiter;
  return true;
}

// False: there is something else to look at first.
bool Turns::begin_turn(const StopSignal& stop) {
  std::unique_lock lock(guard_);
  eventfd_t nudges = 0;
  if (std::exchange(nudged_, false)) eventfd_read(nudge_, &nudges);
  if (lost_) {
    source_ = nullptr;
    throw Error(*lost_);
  }
  if (stop.is_requested()) return false;
  if (reads_ == Who::kNobody && BootClock::now() - left_ >= kAway) aside_ = false;
  if (reads_ == Who::kNobody && !aside_) {
    reads_ = Who::kReader;
    return true;
  }
  const milliseconds pause = reads_ == Who::kNobody ? kAway : kLook;
  lock.unlock();
  pollfd source{interrupt_, POLLIN, 0};
  poll(&source, 1, static_cast<int>(pause.count()));
  return false;
}

void Turns::end_turn(Is source) {
  const std::lock_guard lock(guard_);
  reads_ = Who::kNobody;
  if (source == Is::kLost) source_ = nullptr;
  changed_.notify_all();
}

Turns::Lent::Lent(Turns& turns, LendableSource& source, const StopSignal& stop)
    : turns_(turns), stop_(stop) {
  add_to(turns_.interrupt_, stop.descriptor());  // it was there already, after an outage
  const std::lock_guard lock(turns_.guard_);
  turns_.source_ = &source;
  turns_.lost_.reset();
}

Turns::Lent::~Lent() {
  std::unique_lock lock(turns_.guard_);
  turns_.source_ = nullptr;
  turns_.aside_ = false;
  turns_.changed_.wait(lock, [&] { return turns_.reads_ != Who::kWaiter; });
}

void Turns::Lent::read(const Source::Hint& hint) {
  if (!turns_.begin_turn(stop_)) return;
  try {
    turns_.source_->read_until(turns_.interrupt_, LocalTime::max(), hint);
  } catch (...) {
    turns_.end_turn(Is::kLost);
    throw;
  }
  turns_.end_turn(Is::kThere);
}

}  // namespace simba::kit
