#include "core/strand.h"

#include <algorithm>
#include <utility>

namespace simba::core {

bool Strand::push(MutexState state) {
  notices_.push_back({std::move(state), false});
  return !std::exchange(running_, true);
}

std::optional<Strand::Notice> Strand::next() {
  if (notices_.empty()) {
    running_ = false;
    return std::nullopt;
  }
  forget_passed_term();
  Notice notice = std::move(notices_.front());
  notices_.erase(notices_.begin());
  return notice;
}

void Strand::forget_others() {
  std::erase_if(notices_, [](const Notice& notice) {
    return !notice.state.is_acquired() && !notice.state.is_released();
  });
}

void Strand::forget_passed_term() {
  Notice& first = notices_.front();
  if (!first.state.is_acquired()) return;
  const auto end = std::find_if(notices_.begin() + 1, notices_.end(), [&](const Notice& later) {
    return later.state.is_released() && later.state.self == first.state.self;
  });
  if (end == notices_.end()) return;
  first.silent = end->silent = true;
}

}  // namespace simba::core
