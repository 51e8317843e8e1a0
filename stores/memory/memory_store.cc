#include <map>
#include <mutex>
#include <utility>

#include "simba/memory.h"
#include "stores/kit/watchers.h"
#include "stores/memory/lease_table.h"

namespace simba::inline v0 {
namespace {

StoreTime boot_time() {
  return StoreTime{std::chrono::duration_cast<milliseconds>(BootClock::now().time_since_epoch())};
}

// The shortest store, the one to copy: rows, a lock, and hints after the lock is gone.
//
// Threads: any.
class MemoryStore : public Store {
 public:
  explicit MemoryStore(std::function<StoreTime()> clock) : clock_(std::move(clock)) {}

  const StoreTraits& traits() const override {
    static const StoreTraits traits{"memory", 255, 255, false};
    return traits;
  }

  Answers contend(std::span<const Claim> claims, LocalTime) override {
    const std::lock_guard lock(guard_);
    const StoreTime now = clock_();
    Answers answers;
    answers.reserve(claims.size());
    for (const Claim& claim : claims) answers.emplace_back(rows_.contend(claim, now));
    return answers;
  }

  Answers release(std::span<const Claim> claims, LocalTime) override {
    {
      const std::lock_guard lock(guard_);
      for (const Claim& claim : claims) rows_.release(claim);
    }
    for (const Claim& claim : claims) watchers_->wake(claim.mutex);
    return Answers(claims.size(), Observation{});
  }

  Answers observe(std::span<const std::string_view> mutexes, LocalTime) override {
    const std::lock_guard lock(guard_);
    const StoreTime now = clock_();
    Answers answers;
    for (const std::string_view mutex : mutexes) answers.emplace_back(rows_.observe(mutex, now));
    return answers;
  }

  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime) override {
    Observation after;
    {
      const std::lock_guard lock(guard_);
      after = rows_.evict(mutex, wire_id, token, how, clock_());
    }
    watchers_->wake(mutex);
    return after;
  }

  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view,
                               std::function<void()> wake) override {
    return kit::Watchers::add(watchers_, mutex, std::move(wake));
  }

  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime) override {
    const std::lock_guard lock(guard_);
    return rows_.list(prefix, after, limit, clock_());
  }

 private:
  const std::function<StoreTime()> clock_;
  const std::shared_ptr<kit::Watchers> watchers_ = std::make_shared<kit::Watchers>();
  std::mutex guard_;
  memory::LeaseTable rows_;  // guarded by guard_
};

}  // namespace

std::shared_ptr<Store> make_memory(std::function<StoreTime()> clock) {
  return std::make_shared<MemoryStore>(clock ? std::move(clock) : boot_time);
}

std::shared_ptr<Store> open_memory(std::string_view name) {
  static std::mutex guard;
  static std::map<std::string, std::weak_ptr<Store>, std::less<>> open;
  const std::lock_guard lock(guard);
  auto it = open.find(name);
  if (it == open.end()) it = open.emplace(std::string(name), std::weak_ptr<Store>{}).first;
  std::shared_ptr<Store> store = it->second.lock();
  if (!store) it->second = store = make_memory();
  return store;
}

}  // namespace simba::inline v0
