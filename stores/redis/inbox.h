#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "simba/time.h"
#include "stores/kit/reader.h"
#include "stores/redis/reply.h"
#include "stores/redis/subscriptions.h"

namespace simba::redis {

// What the messages of a subscribed connection mean: who is told, and when. See listener.h.
//
// A server may send anything: of mutexes nobody here asked for nothing is kept.
// No I/O, no clock. Threads: one at a time.
class Inbox {
 public:
  using Hint = kit::Source::Hint;

  // `id`: of the channels that are this process's alone.
  Inbox(std::shared_ptr<Subscriptions> subscriptions, std::string_view id);

  // Throws Error for a reply that is an error; `where` is who sent it.
  void take(const Reply& reply, const std::string& where, LocalTime now, const Hint& hint);
  // Passes on what has waited for long enough. Returns when there is more.
  LocalTime pass_on_due(LocalTime now, const Hint& hint);
  void forget(const std::string& mutex);
  const std::string& own_end() const { return own_end_; }  // ":ID"

 private:
  void heard(std::string_view channel, std::string_view text, LocalTime now, const Hint& hint);

  const std::shared_ptr<Subscriptions> subscriptions_;
  const std::string own_end_;
  std::map<std::string, LocalTime, std::less<>> due_;        // broadcasts still to be acted on
  std::map<std::string, std::string, std::less<>> told_by_;  // who has woken us already, by mutex
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace simba::redis
