// Messages of a Redis server on a subscribed connection: whatever they say, only who asked to hear
// of a mutex is told of it, and told once.
#include <map>
#include <memory>
#include <set>
#include <string>

#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/redis/inbox.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace redis = simba::redis;
  simba::fuzz::Input input(data, size);
  const std::set<std::string, std::less<>> watched{"job", "job}", "a:b"};
  const auto subscriptions = std::make_shared<redis::Subscriptions>();
  for (const std::string& mutex : watched) {
    subscriptions->watch(mutex, nullptr);
    if (input.flip()) subscriptions->queued(mutex, 1, 1);
  }
  subscriptions->changes(nullptr, simba::LocalTime{});
  redis::Inbox inbox(subscriptions, "me@here~1");
  std::size_t hints = 0;
  const auto hint = [&](std::string_view mutex) {
    require(watched.contains(mutex), "only what is watched is hinted at");
    ++hints;
  };

  redis::ReplyReader reader;
  redis::Replies replies;
  const std::string bytes = input.rest();
  accepts<simba::Error>([&] { reader.feed(bytes, replies); });
  const simba::LocalTime now{simba::milliseconds{1'000'000}};
  for (const redis::Reply& reply : replies) {
    accepts<simba::Error>([&] { inbox.take(reply, "redis at nowhere", now, hint); });
  }
  require(hints <= replies.size(), "a message is one hint at most");
  hints = 0;
  require(inbox.pass_on_due(now + simba::milliseconds{20}, hint) == simba::LocalTime::max(),
          "nothing is held back for longer than its spread");
  require(hints <= watched.size(), "and nothing is kept of other mutexes");
  return 0;
}
