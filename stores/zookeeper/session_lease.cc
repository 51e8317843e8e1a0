#include "stores/zookeeper/session_lease.h"

#include <algorithm>

namespace simba::zookeeper {

void SessionLease::begin(LocalTime sent, milliseconds timeout, milliseconds tick) {
  *this = {};
  timeout_ = timeout;
  tick_ = tick;
  begun_ = newest_ = sent;
  answered_.fill({sent, sent});
  until_ = sent + length();
}

void SessionLease::answered(LocalTime sent, LocalTime heard) {
  if (sent < newest_ + tick_ / kInATick) return;
  newest_ = sent;
  answered_[next_] = {sent, heard};
  next_ = (next_ + 1) % kRemembered;
}

void SessionLease::committed(LocalTime sent) {
  LocalTime reported = begun_;
  for (const Request& earlier : answered_) {
    if (earlier.heard <= sent - tick_) reported = std::max(reported, earlier.sent);
  }
  until_ = std::max(until_, std::min(sent + length(), reported + timeout_));
}

void SessionLease::shorten(milliseconds timeout) {
  if (timeout >= timeout_) return;
  until_ -= timeout_ - timeout;
  timeout_ = timeout;
}

}  // namespace simba::zookeeper
