#include "stores/zookeeper/session_lease.h"

#include <algorithm>

namespace simba::zookeeper {

void SessionLease::begin(LocalTime sent, milliseconds timeout, milliseconds tick) {
  *this = {};
  timeout_ = timeout;
  tick_ = tick;
  begun_ = newest_ = sent;
  answered_.fill(sent);
  until_ = sent + length();
}

void SessionLease::answered(LocalTime sent) {
  if (sent < newest_ + tick_ / kInATick) return;
  newest_ = sent;
  answered_[next_] = sent;
  next_ = (next_ + 1) % kRemembered;
}

void SessionLease::committed(LocalTime sent) {
  LocalTime heard = begun_;
  for (const LocalTime earlier : answered_) {
    if (earlier <= sent - tick_) heard = std::max(heard, earlier);
  }
  until_ = std::max(until_, std::min(sent + length(), heard + timeout_));
}

}  // namespace simba::zookeeper
