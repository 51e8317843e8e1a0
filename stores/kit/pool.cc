#include "stores/kit/pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "stores/kit/backoff.h"
#include "stores/kit/forked.h"
#include "stores/kit/this_process.h"

namespace simba::kit {
namespace {

// Short: with the smallest leases a renewal has little time. Long enough to spare a server that
// refuses a password.
constexpr milliseconds kFirstPause{25}, kLongestPause{250};

}  // namespace

struct Pool::State {
  explicit State(Options its_options) : options(std::move(its_options)) {}

  const ThisProcess process;
  const Options options;
  std::mutex guard;
  std::condition_variable for_keep, for_ask, for_opener;
  // All below guarded by guard.
  std::vector<std::unique_ptr<Pooled>> idle;
  std::size_t open = 0;     // idle and in use; one that is being opened does not count
  std::size_t in_use[2]{};  // by lane
  std::size_t waiting[2]{};
  std::uint64_t failures = 0;    // of opening
  std::optional<Error> trouble;  // of the last opening
  LocalTime not_before{};        // opens nothing until then
  Backoff backoff{kFirstPause, kLongestPause};
  bool reserve_due = false;
  bool closed = false;

  static std::size_t at(Lane lane) { return static_cast<std::size_t>(lane); }
  std::condition_variable& condition(Lane lane) { return lane == Lane::kKeep ? for_keep : for_ask; }

  // How many acquisitions may have in use, given what is open. The first one is anybody's.
  std::size_t share_of_ask() const {
    return std::max<std::size_t>(1, open - std::min(open, options.reserved));
  }
  std::size_t takeable(Lane lane) const {
    if (lane == Lane::kKeep) return idle.size();
    const std::size_t left = idle.size() - std::min(idle.size(), waiting[at(Lane::kKeep)]);
    return std::min(left, share_of_ask() - std::min(share_of_ask(), in_use[at(lane)]));
  }
  bool wants_more() const {
    if (open >= options.most) return false;
    return reserve_due || waiting[at(Lane::kKeep)] > idle.size() ||
           waiting[at(Lane::kAsk)] > takeable(Lane::kAsk);
  }

  // Only calls ask for it: a server that is full is not asked again and again.
  void want_reserve() {
    if (open > options.reserved || reserve_due || BootClock::now() < not_before) return;
    reserve_due = true;
    for_opener.notify_one();
  }
  void take_back(std::unique_ptr<Pooled> connection, Lane lane);
  void open_on_demand(const StopSignal& stop);
  void open_one(std::unique_lock<std::mutex>& lock, const StopSignal& stop);
  void wait(std::unique_lock<std::mutex>& lock, Lane lane, LocalTime deadline);
  [[noreturn]] void give_up(std::size_t in_use_now) const;

 private:
  std::minstd_rand random_{std::random_device{}()};
};

Pool::Borrowed::~Borrowed() {
  if (connection_) state_->take_back(std::move(connection_), lane_);
}

Pool::Pool(Options options) : state_(std::make_shared<State>(std::move(options))) {}

Pool::~Pool() {
  if (!state_->process.is_still()) {
    // Its connections are copies of the parent's; a lock may be held.
    leave_alone(std::move(state_));
    static_cast<void>(opener_.release());
    return;
  }
  std::vector<std::unique_ptr<Pooled>> idle;
  {
    const std::lock_guard lock(state_->guard);
    state_->closed = true;
    idle = std::move(state_->idle);
    state_->for_opener.notify_all();
  }
  opener_.reset();
}

Pool::Borrowed Pool::borrow(Lane lane, LocalTime deadline, Reserve reserve) {
  State& state = *state_;
  const std::size_t place = State::at(lane);
  std::unique_lock lock(state.guard);
  if (!opener_) {
    opener_ = std::make_unique<Worker>("simba-connect", [shared = state_](const StopSignal& stop) {
      shared->open_on_demand(stop);
    });
  }
  while (true) {
    if (state.takeable(lane) == 0) state.wait(lock, lane, deadline);
    std::unique_ptr<Pooled> connection = std::move(state.idle.back());
    state.idle.pop_back();
    ++state.in_use[place];
    if (reserve == Reserve::kNow) state.want_reserve();
    lock.unlock();
    if (connection->is_usable()) return {state_, std::move(connection), lane};
    connection.reset();  // outside the lock: it may say good-bye
    lock.lock();
    --state.in_use[place];
    --state.open;
  }
}

void Pool::note_failure(Pooled& connection, const Error& error, bool only_reads) {
  const bool is_gone = error.errc() == Errc::kUnreachable && !connection.is_usable();
  if (only_reads || is_gone) drop_idle();
}

void Pool::drop_idle() {
  std::unique_lock lock(state_->guard);
  std::vector<std::unique_ptr<Pooled>> dropped = std::exchange(state_->idle, {});
  const std::size_t count = dropped.size();
  lock.unlock();
  dropped.clear();
  lock.lock();
  state_->open -= count;  // now that they are closed
}

// Returns when there is one to take.
void Pool::State::wait(std::unique_lock<std::mutex>& lock, Lane lane, LocalTime deadline) {
  const std::uint64_t failures_before = failures;
  ++waiting[at(lane)];
  while (takeable(lane) == 0) {
    const LocalTime now = BootClock::now();
    const bool told = failures != failures_before || (trouble && now < not_before);
    const bool none_comes_back = open == 0;
    if (now >= deadline || (told && none_comes_back)) {
      --waiting[at(lane)];
      for_ask.notify_one();  // what came back just then may be theirs now
      give_up(in_use[at(Lane::kAsk)] + in_use[at(Lane::kKeep)]);
    }
    for_opener.notify_one();
    condition(lane).wait_for(lock, deadline - now);
  }
  --waiting[at(lane)];
}

void Pool::State::give_up(std::size_t in_use_now) const {
  if (trouble) throw Error(*trouble);
  if (in_use_now < options.most) {
    throw Error(Errc::kTimeout, options.name + ": no connection was open before the deadline");
  }
  throw Error(Errc::kTimeout, options.name + ": all " + std::to_string(options.most) +
                                  " connections were in use until the deadline");
}

void Pool::State::take_back(std::unique_ptr<Pooled> connection, Lane lane) {
  if (!connection->is_usable()) connection.reset();
  const std::lock_guard lock(guard);
  --in_use[at(lane)];
  if (connection) {
    idle.push_back(std::move(connection));
  } else {
    --open;
  }
  if (waiting[at(Lane::kKeep)] > 0) for_keep.notify_one();
  if (waiting[at(Lane::kAsk)] > 0) for_ask.notify_one();
}

void Pool::State::open_on_demand(const StopSignal& stop) {
  std::unique_lock lock(guard);
  while (!closed) {
    const LocalTime now = BootClock::now();
    if (!wants_more()) {
      for_opener.wait(lock);
    } else if (now < not_before) {
      for_opener.wait_for(lock, not_before - now);
    } else {
      open_one(lock, stop);
    }
  }
}

void Pool::State::open_one(std::unique_lock<std::mutex>& lock, const StopSignal& stop) {
  reserve_due = false;
  lock.unlock();
  std::unique_ptr<Pooled> connection;
  std::optional<Error> error;
  try {
    connection = options.open(stop);
  } catch (const Error& thrown) {
    error = thrown;
  } catch (const std::exception& thrown) {
    error.emplace(Errc::kUnreachable, options.name + ": " + thrown.what());
  }
  lock.lock();
  if (connection) {
    ++open;
    idle.push_back(std::move(connection));
    trouble.reset();
    not_before = {};
    backoff.reset();
  } else {
    ++failures;
    trouble = std::move(error);
    not_before = BootClock::now() + backoff.next(random_());
  }
  for_keep.notify_all();
  for_ask.notify_all();
}

}  // namespace simba::kit
