#include "stores/redis/link.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simba/error.h"
#include "stores/redis/parking.h"

namespace simba::redis {
namespace {

// So many who wait are worth a thread that serves them.
constexpr std::size_t kMany = 4;
// A connection at rest for longer is looked at before it is used.
constexpr milliseconds kRest{10};
constexpr milliseconds kSilence{1'000};
// So much waits to be sent where the server has long taken nothing: what is posted then is dropped.
constexpr std::size_t kMostUnsent = std::size_t{1} << 20;

// One caller's, on its stack.
struct Call {
  enum State : std::uint32_t { kWaiting, kDrives, kDone };

  Replies& replies;
  Parking state{kWaiting};
  std::optional<Error> error;

  bool is_done() const { return state.value() == kDone; }
};

}  // namespace

struct Link::State {
  explicit State(kit::Pool::Borrowed its)
      : borrowed(std::move(its)), connection(static_cast<Connection&>(borrowed.get())) {}

  struct Pending {
    Call* call;  // null: it has left
    std::size_t left;
    LocalTime sent;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Woken = std::vector<const Parking*>;

  kit::Pool::Borrowed borrowed;
  Connection& connection;
  // Where there is no memory for any other words.
  const Error wordless{Errc::kUnreachable,
                       connection.where() + ": no memory; whether the server acted is unknown"};

  std::mutex guard;
  // All below guarded by guard.
  std::deque<Pending> pending;
  std::string out;
  std::string being_sent;  // before `out`; its rest stays where the socket takes no more
  short wants = 0;         // the events that the rest waits for; 0: there is none
  bool driven = false;     // somebody reads, or has been asked to
  bool parked = false;     // the driver waits for the server: who has something to send sends it
  bool writing = false;    // somebody sends
  LocalTime last_heard{};
  std::optional<Error> broken;
  // Of the link's own thread.
  std::condition_variable offered;
  bool is_offered = false, closed = false;

  Error error(Errc code, const char* what) const noexcept {
    try {
      return {code, connection.where() + ": " + what};
    } catch (const std::bad_alloc&) {
      return wordless;
    }
  }

  // What stopped it, if anything: whatever that was, those who wait must hear of it.
  template <class Act>
  std::optional<Error> trouble_of(Act act) const noexcept {
    try {
      act();
      return std::nullopt;
    } catch (const Error& trouble) {
      return trouble;
    } catch (...) {
      return wordless;
    }
  }

  // Both or neither: an answer that is not expected would be taken for that to the next question.
  void append(const Commands& commands, Call* call, LocalTime now) {
    pending.push_back({call, commands.count(), now});
    try {
      out.append(commands.bytes());
    } catch (...) {
      pending.pop_back();
      throw;
    }
  }

  // Nobody waits for an answer, and for a while nothing was sent or heard. What was posted may
  // still have answers that nobody has read.
  bool has_rested(LocalTime now) const {
    if (driven || now - last_heard <= kRest) return false;
    return pending.empty() ||
           (now - pending.back().sent > kRest &&
            std::none_of(pending.begin(), pending.end(),
                         [](const Pending& each) { return each.call != nullptr; }));
  }

  // Of one that has rested. The end stands behind the answers to what was posted.
  bool is_alive() {
    if (!pending.empty()) {
      Replies came;
      Woken nobody;
      const auto trouble = trouble_of([&] { connection.receive(came); });
      distribute(came, nobody);
      if (trouble) break_off(*trouble);
    }
    if (!broken && !connection.is_usable()) break_off(error(Errc::kUnreachable, "closed"));
    return !broken;
  }

  // Sends what the socket takes; the rest is left to whoever comes next. Without the lock
  // meanwhile.
  void flush(Lock& lock) {
    while (!(being_sent.empty() && out.empty()) && !writing && !broken) {
      writing = true;
      if (being_sent.empty()) being_sent.swap(out);
      lock.unlock();
      Transport::Moved moved;
      const auto trouble = trouble_of([&] { moved = connection.send_some(being_sent); });
      lock.lock();
      being_sent.erase(0, moved.count);
      writing = false;
      // It took nothing for a while, and now it does: as good as a word.
      if (wants != 0 && moved.count > 0) last_heard = BootClock::now();
      wants = moved.count > 0 ? short{0} : moved.wants;
      if (trouble) break_off(*trouble);
      if (wants != 0) return;
    }
  }

  // Who is not the driver gives others that were just woken the chance to come along: one system
  // call sends what all of them have to say.
  void flush_as_guest(Lock& lock) {
    if (!parked || writing) return;
    if (pending.size() >= kMany) {
      lock.unlock();
      sched_yield();
      lock.lock();
      if (!parked || writing) return;
    }
    flush(lock);
  }

  // Until `mine` is answered or, without it, until nobody waits; until the deadline or the stop.
  void drive(Lock& lock, const Call* mine, LocalTime deadline, const kit::StopSignal* stop) {
    Woken woken;
    const auto is_over = [&] { return mine != nullptr ? mine->is_done() : pending.empty(); };
    const auto must_end = [&] {
      return stop != nullptr ? stop->is_requested() : BootClock::now() >= deadline;
    };
    while (!broken && !is_over() && !must_end()) {
      flush(lock);
      if (broken) break;
      parked = true;
      const short other = wants;
      lock.unlock();
      wake(woken);
      Replies came;
      const auto trouble = trouble_of([&] { connection.await(came, deadline, stop, other); });
      lock.lock();
      parked = false;
      const auto further = trouble_of([&] { distribute(came, woken); });
      if (trouble) break_off(*trouble);
      if (further) break_off(*further);
    }
    if (woken.empty()) return;
    lock.unlock();
    wake(woken);
    lock.lock();
  }

  void distribute(Replies& came, Woken& woken) {
    if (!came.empty()) last_heard = BootClock::now();
    for (Reply& reply : came) {
      if (pending.empty()) {
        return break_off(error(Errc::kCorrupt, "an answer without a question"));
      }
      Pending& first = pending.front();
      if (first.call != nullptr) first.call->replies.push_back(std::move(reply));
      if (--first.left > 0) continue;
      if (first.call != nullptr) finish(*first.call, woken);
      pending.pop_front();
    }
  }

  static void finish(Call& call, Woken& woken) {
    if (call.state.value() == Call::kWaiting) woken.push_back(&call.state);
    call.state.set(Call::kDone);
  }

  static void wake(Woken& woken) {
    for (const Parking* each : woken) Parking::wake(each);
    woken.clear();
  }

  // Wakes under the lock: a list of whom to wake later would need memory.
  void break_off(const Error& why) noexcept {
    if (broken) return;
    broken = why;
    connection.shut_down();
    for (Pending& each : pending) {
      if (each.call == nullptr) continue;
      each.call->error = why;
      each.call->state.set(Call::kDone);
      Parking::wake(&each.call->state);
    }
    pending.clear();
  }

  // A caller that waited in vain.
  void leave(const Call& call, LocalTime now) {
    for (Pending& each : pending) {
      if (each.call == &call) each.call = nullptr;
    }
    const LocalTime since = std::max(last_heard, pending.empty() ? now : pending.front().sent);
    if (now - since >= kSilence) {
      break_off(error(Errc::kUnreachable,
                      "the server has said nothing for a second; whether it acted is unknown"));
    }
  }

  Call* next_driver() {
    for (const Pending& each : pending) {
      if (each.call != nullptr) return each.call;
    }
    return nullptr;
  }
};

Link::Link(kit::Pool::Borrowed borrowed) : state_(std::make_shared<State>(std::move(borrowed))) {}

Link::~Link() {
  {
    const std::lock_guard lock(state_->guard);
    state_->closed = true;
    state_->offered.notify_all();
  }
  worker_.reset();
}

bool Link::run(const Commands& commands, LocalTime deadline, Replies& replies) {
  State& state = *state_;
  replies.reserve(replies.size() + commands.count());  // nothing may fail once it has an answer
  Call call{replies, Parking{Call::kWaiting}, {}};
  State::Lock lock(state.guard);
  if (state.broken) return false;
  const LocalTime now = BootClock::now();
  if (state.has_rested(now) && !state.is_alive()) return false;
  if (now >= deadline) {
    throw Error(Errc::kTimeout, state.connection.where() +
                                    ": the deadline has passed already; nothing was changed");
  }
  state.append(commands, &call, now);
  bool drives = !std::exchange(state.driven, true);
  if (drives) call.state.set(Call::kDrives);
  if (!drives) state.flush_as_guest(lock);
  LocalTime later = now;
  while (!drives && !call.is_done() && later < deadline) {
    if (call.state.value() == Call::kWaiting) {
      lock.unlock();
      call.state.wait(Call::kWaiting, deadline);
      lock.lock();
      later = BootClock::now();
    }
    drives = call.state.value() == Call::kDrives;
  }
  if (drives) state.drive(lock, &call, deadline, nullptr);
  if (!call.is_done()) state.leave(call, BootClock::now());
  if (drives || call.state.value() == Call::kDrives) hand_over(lock);
  if (call.error) throw Error(*call.error);
  if (call.is_done()) return true;
  throw Error(Errc::kTimeout, state.connection.where() +
                                  ": no answer within the deadline; whether the server acted is "
                                  "unknown");
}

// The wheel is free: to whom it goes.
void Link::hand_over(std::unique_lock<std::mutex>& lock) {
  State& state = *state_;
  state.driven = false;
  if (state.broken) return;
  Call* const next = state.next_driver();
  if (next == nullptr) return state.flush(lock);  // what somebody posted
  state.driven = true;
  if (state.pending.size() >= kMany && start_worker()) {
    state.is_offered = true;
    lock.unlock();
    state.offered.notify_one();
    return;
  }
  next->state.set(Call::kDrives);
  const Parking* const parking = &next->state;
  lock.unlock();
  Parking::wake(parking);
}

bool Link::start_worker() try {
  if (worker_) return true;
  worker_ =
      std::make_unique<kit::Worker>("simba-redis", [shared = state_](const kit::StopSignal& stop) {
        State& state = *shared;
        State::Lock lock(state.guard);
        while (!state.closed) {
          if (!state.is_offered) {
            state.offered.wait(lock);
            continue;
          }
          state.is_offered = false;
          // Its end lets go of the lock to wake others: somebody may have come meanwhile.
          while (!state.pending.empty() && !state.broken && !stop.is_requested()) {
            state.drive(lock, nullptr, LocalTime::max(), &stop);
          }
          state.driven = false;
        }
      });
  return true;
} catch (const std::exception&) {  // no thread, or no memory for it
  return false;
}

void Link::post(const Commands& commands) noexcept try {
  State& state = *state_;
  State::Lock lock(state.guard);
  if (state.broken || state.out.size() > kMostUnsent) return;
  state.append(commands, nullptr, BootClock::now());
  if (!state.driven || state.parked) state.flush(lock);
} catch (const std::exception&) {
  return;  // whoever uses it next hears of the trouble
}

void Link::give_up(const Error& why) {
  const std::lock_guard lock(state_->guard);
  state_->break_off(why);
}

bool Link::is_broken() const {
  const std::lock_guard lock(state_->guard);
  return state_->broken.has_value();
}

const ServerFacts& Link::facts() const { return state_->connection.facts; }
const std::string& Link::where() const { return state_->connection.where(); }

}  // namespace simba::redis
