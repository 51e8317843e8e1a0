#pragma once

#include <memory>
#include <new>
#include <utility>

namespace simba::kit {

// For a destructor in a forked child: what is shared with the parent (a lock that may be held, a
// connection that would say good-bye, a thread that is not here) is left as it is, for ever.
template <class T>
void leave_alone(std::shared_ptr<T> kept) noexcept {
  static_cast<void>(new (std::nothrow) std::shared_ptr<T>(std::move(kept)));
}

}  // namespace simba::kit
