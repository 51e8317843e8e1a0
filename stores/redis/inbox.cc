#include "stores/redis/inbox.h"

#include <algorithm>
#include <utility>

#include "stores/redis/failure.h"
#include "stores/redis/names.h"

namespace simba::redis {
namespace {

// Long enough for who was woken to be heard as the new owner, even over a slow network.
constexpr std::int64_t kSpreadMicros = 20'000;
// Of an id only so much is compared: more than any contender has.
constexpr std::size_t kLongestId = 255;

}  // namespace

Inbox::Inbox(std::shared_ptr<Subscriptions> subscriptions, std::string_view id)
    : subscriptions_(std::move(subscriptions)), own_end_(':' + std::string(id)) {}

void Inbox::take(const Reply& reply, const std::string& where, LocalTime now, const Hint& hint) {
  if (reply.is_error()) throw failure(reply, where);
  if (reply.items.size() < 3) return;
  const std::string& kind = reply.items[0].text;
  const std::string& channel = reply.items[1].text;
  if (kind == "message") return heard(channel, reply.items[2].text, now, hint);
  if (kind != "subscribe" || !channel.ends_with(own_end_)) return;
  const std::string mutex(
      mutex_of(std::string_view(channel).substr(0, channel.size() - own_end_.size())));
  if (!subscriptions_->knows(mutex)) return;
  subscriptions_->confirmed(mutex);
  hint(mutex);  // what happened before was not heard
}

void Inbox::heard(std::string_view channel, std::string_view text, LocalTime now,
                  const Hint& hint) {
  const Message message = parse_message(text);
  const std::string_view teller = message.id.substr(0, kLongestId);
  const bool ours = channel.ends_with(own_end_);
  if (ours) channel.remove_suffix(own_end_.size());
  const std::string mutex(mutex_of(channel));
  if (!subscriptions_->knows(mutex)) return;
  if (ours) {
    subscriptions_->left_queue(mutex);  // who wakes somebody takes it out of the queue
    told_by_[mutex] = teller;
    due_.erase(mutex);
    return hint(mutex);
  }
  if (message.news == News::kReleased) {
    const auto told = told_by_.find(mutex);
    const bool known = told != told_by_.end() && told->second == teller;
    if (known) {
      told_by_.erase(told);
      return;
    }
    const auto delay = static_cast<std::int64_t>(random_()) % kSpreadMicros;
    due_.try_emplace(mutex, now + std::chrono::microseconds(delay));
  }
  if (message.news == News::kAcquired && subscriptions_->place(mutex).queued) due_.erase(mutex);
}

LocalTime Inbox::pass_on_due(LocalTime now, const Hint& hint) {
  LocalTime next = LocalTime::max();
  for (auto it = due_.begin(); it != due_.end();) {
    if (it->second > now) {
      next = std::min(next, (it++)->second);
      continue;
    }
    const std::string mutex = it->first;
    it = due_.erase(it);
    hint(mutex);
  }
  return next;
}

void Inbox::forget(const std::string& mutex) {
  due_.erase(mutex);
  told_by_.erase(mutex);
}

}  // namespace simba::redis
