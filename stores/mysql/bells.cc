#include "stores/mysql/bells.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace simba::mysql {
namespace {

using namespace std::chrono_literals;

// How long a place that nobody needs any more is kept: whoever takes turns waits again soon.
constexpr auto kLinger = 5s;

}  // namespace

Bells::Bells() : changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (changed_ >= 0) return;
  throw Error(Errc::kUnreachable, "mysql: there is no file descriptor left to wait with");
}

Bells::~Bells() { ::close(changed_); }

std::shared_ptr<Bells::Bell> Bells::want(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  auto it = bells_.find(mutex);
  if (it == bells_.end()) it = bells_.emplace(mutex, std::make_shared<Bell>()).first;
  Bell& bell = *it->second;
  ++bell.wanted;
  if (bell.needs_place() && !bell.has_place) eventfd_write(changed_, 1);
  return it->second;
}

void Bells::drop(const std::shared_ptr<Bell>& bell) {
  const std::lock_guard lock(guard_);
  const bool needed = bell->needs_place();
  --bell->wanted;
  if (needed && !bell->needs_place()) bell->idle_since = BootClock::now();
}

void Bells::note(std::string_view mutex, std::string_view wire_id, const Observation& seen) {
  const std::string& owner = seen.owner.id;
  const bool is_granted = !wire_id.empty() && owner == wire_id;
  const bool is_refused = !wire_id.empty() && !is_granted;
  const std::lock_guard lock(guard_);
  auto it = bells_.find(mutex);
  if (it == bells_.end()) {
    if (!is_refused) return;
    // Whoever is refused will wait, and wants the bell in a moment.
    forget_unwanted(BootClock::now());
    it = bells_.emplace(mutex, std::make_shared<Bell>()).first;
    it->second->idle_since = BootClock::now();
  }
  Bell& bell = *it->second;
  const bool needed = bell.needs_place(), contended = bell.contends;
  if (is_granted) bell.holder = owner;
  if (bell.holder != owner) bell.holder.clear();
  bell.contends = bell.contends || is_refused;
  const bool needs = bell.needs_place();
  if (needed && !needs) bell.idle_since = BootClock::now();
  const bool may_do_better = !contended && bell.contends && !bell.is_live;
  if (needs && (!bell.has_place || may_do_better)) eventfd_write(changed_, 1);
}

void Bells::clear_descriptor() const {
  eventfd_t ignored = 0;
  eventfd_read(changed_, &ignored);
}

void Bells::forget_unwanted(LocalTime now) {
  if (now - swept_ < kLinger) return;
  swept_ = now;
  std::erase_if(bells_, [&](const auto& each) {
    return each.second->wanted == 0 && now - each.second->idle_since > kLinger;
  });
}

std::vector<Bells::Wanted> Bells::all(LocalTime now) {
  const std::lock_guard lock(guard_);
  forget_unwanted(now);
  std::vector<Wanted> out;
  for (const auto& [mutex, bell] : bells_) {
    bell->has_place = bell->needs_place() || (bell->has_place && now - bell->idle_since <= kLinger);
    if (bell->has_place) out.push_back({mutex, bell, bell->contends});
  }
  return out;
}

}  // namespace simba::mysql
