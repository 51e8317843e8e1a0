#include "stores/kit/watchers.h"

#include <utility>
#include <vector>

#include "stores/kit/this_process.h"

namespace simba::kit {

class Watchers::Ticket : public Watch {
 public:
  Ticket(std::shared_ptr<Watchers> watchers, std::shared_ptr<Entry> entry,
         std::multimap<std::string, std::shared_ptr<Entry>, std::less<>>::iterator at)
      : watchers_(std::move(watchers)), entry_(std::move(entry)), at_(at) {}

  ~Ticket() override {
    if (!process_.is_still()) return;  // forked: somebody may have held the lock then
    {
      const std::lock_guard lock(watchers_->guard_);
      watchers_->entries_.erase(at_);
      watchers_->count_.fetch_sub(1, std::memory_order_relaxed);
    }
    const std::lock_guard lock(entry_->calling);
    entry_->ended = true;
  }

 private:
  const ThisProcess process_;
  const std::shared_ptr<Watchers> watchers_;
  const std::shared_ptr<Entry> entry_;
  const std::multimap<std::string, std::shared_ptr<Entry>, std::less<>>::iterator at_;
};

std::unique_ptr<Watch> Watchers::add(std::shared_ptr<Watchers> watchers, std::string_view mutex,
                                     std::function<void()> wake) {
  auto entry = std::make_shared<Entry>(std::move(wake));
  Watchers& all = *watchers;
  const std::lock_guard lock(all.guard_);
  const auto at = all.entries_.emplace(std::string(mutex), entry);
  all.count_.fetch_add(1, std::memory_order_relaxed);
  return std::make_unique<Ticket>(std::move(watchers), std::move(entry), at);
}

void Watchers::call(Entry& entry) {
  const std::lock_guard lock(entry.calling);
  if (!entry.ended) entry.wake();
}

void Watchers::wake(std::string_view mutex) {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  std::vector<std::shared_ptr<Entry>> found;
  {
    const std::lock_guard lock(guard_);
    const auto [from, to] = entries_.equal_range(mutex);
    for (auto it = from; it != to; ++it) found.push_back(it->second);
  }
  for (const auto& entry : found) call(*entry);
}

void Watchers::wake_all() {
  std::vector<std::shared_ptr<Entry>> found;
  {
    const std::lock_guard lock(guard_);
    for (const auto& [mutex, entry] : entries_) found.push_back(entry);
  }
  for (const auto& entry : found) call(*entry);
}

}  // namespace simba::kit
