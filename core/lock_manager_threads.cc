#include <atomic>
#include <vector>

#include "core/lock_manager.h"
#include "core/session.h"

namespace simba::core {
namespace {

thread_local bool is_ending = false;

// What is left to do when a thread ends.
struct Presence {
  Presence() {
    static std::atomic<std::uint64_t> last{0};
    number = ++last;
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  ~Presence() {
    is_ending = true;
    for (const auto& [weak, weak_heart] : left) {
      const auto hold = weak.lock();
      if (!hold || !hold->end()) continue;
      if (const auto heart = weak_heart.lock()) heart->count_ended_thread();
    }
  }
  void add(const std::shared_ptr<Hold>& hold, const std::shared_ptr<Heart>& heart) {
    if (left.size() >= sweep_at) {
      std::erase_if(left, [](const auto& each) { return each.first.expired(); });
      sweep_at = std::max<std::size_t>(2 * left.size(), 64);
    }
    left.emplace_back(hold, heart);
  }

  std::uint64_t number;
  std::vector<std::pair<std::weak_ptr<Hold>, std::weak_ptr<Heart>>> left;
  std::size_t sweep_at = 64;
};

Presence& presence() {
  if (is_ending) {
    throw Error(Errc::kMisuse,
                "this thread is ending and cannot lock any more: its locks were "
                "given back; use a lock before the thread's own variables go");
  }
  thread_local Presence here;
  return here;
}

}  // namespace

std::uint64_t this_thread_number() { return presence().number; }

void give_back_at_thread_end(const std::shared_ptr<Hold>& hold,
                             const std::shared_ptr<Heart>& heart) {
  presence().add(hold, heart);
}

std::vector<std::shared_ptr<Hold>> held_by_this_thread() {
  std::vector<std::shared_ptr<Hold>> found;
  if (is_ending) return found;
  for (const auto& [weak, heart] : presence().left) {
    auto hold = weak.lock();
    if (hold && hold->is_held() && !hold->is_forked()) found.push_back(std::move(hold));
  }
  return found;
}

bool Hold::is_forked() const { return session_->is_forked(); }

// A lock that is locked again gets a new lease. One that was lost meanwhile is not taken anew under
// the eyes of a caller who believes in the old term: it hears of it, and then may lock again.
bool Hold::acquire(const Acquire& acquire, nanoseconds patience, IfLost then) {
  if (!held_) {
    held_ = acquire(locker_);
    return held_;
  }
  if (locker_.renew_for(patience)) return true;
  const Loss loss = locker_.term().loss();
  unlock();
  if (then == IfLost::kSaysNo) return false;
  const bool is_known = loss.reason != LossReason::kNone;
  throw Error(Errc::kMisuse,
              "'" + locker_.mutex() + "' was lost since this thread locked it (" +
                  (is_known ? to_string(loss.reason) : "not renewed in time") +
                  "): what it began is no longer protected; lock it once more for a new term");
}

void Hold::unlock() noexcept {
  locker_.unlock();
  held_ = false;
}

void Hold::unlock_soon() noexcept {
  locker_.unlock_soon();
  held_ = false;
}

void Hold::unlock_elsewhere(std::function<void()> done) noexcept try {
  if (is_forked()) return;
  session_->engine().executor().callback([self = shared_from_this(), done = std::move(done)] {
    self->unlock();
    done();
  });
} catch (const std::exception& error) {
  session_->log(LogLevel::kError, "'" + locker_.mutex() +
                                      "' is not given back before its lease ends: " + error.what());
}

bool Hold::end() noexcept {
  ended_ = true;
  if (!held_ || is_forked()) return false;
  unlock_soon();
  return true;
}

}  // namespace simba::core
