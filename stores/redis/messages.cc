#include "stores/redis/messages.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "simba/error.h"
#include "stores/redis/failure.h"
#include "stores/redis/names.h"

namespace simba::redis {
namespace {

// Long enough for who was woken to be heard as the new owner, even over a slow network.
constexpr std::int64_t kSpreadMicros = 20'000;

void wait(int connection, int bell, int stop, LocalTime until) {
  pollfd sources[] = {{connection, POLLIN, 0}, {bell, POLLIN, 0}, {stop, POLLIN, 0}};
  const auto left = std::max<nanoseconds::rep>((until - BootClock::now()).count(), 0);
  const timespec time{static_cast<time_t>(left / 1'000'000'000),
                      static_cast<long>(left % 1'000'000'000)};
  ppoll(sources, std::size(sources), until == LocalTime::max() ? nullptr : &time, nullptr);
}

}  // namespace

Messages::Messages(std::unique_ptr<Connection> connection, std::shared_ptr<const Node> node,
                   std::shared_ptr<Subscriptions> subscriptions, std::shared_ptr<const Bell> bell,
                   std::string id)
    : connection_(std::move(connection)),
      node_(std::move(node)),
      subscriptions_(std::move(subscriptions)),
      bell_(std::move(bell)),
      own_end_(':' + std::move(id)) {
  subscriptions_->lost(node_.get());  // by the connection before
}

Messages::~Messages() { subscriptions_->lost(node_.get()); }

void Messages::read(const kit::StopSignal& stop, const Hint& hint) {
  const LocalTime next = std::min(reconcile(), pass_on_due(hint));
  wait(connection_->descriptor(), bell_->descriptor(), stop.descriptor(), next);
  bell_->quiet();
  Replies replies;
  connection_->receive(replies);
  for (const Reply& reply : replies) handle(reply, hint);
}

// Asks for what is wanted. Returns when to look again.
LocalTime Messages::reconcile() {
  const Subscriptions::Changes changes = subscriptions_->changes(node_.get(), BootClock::now());
  Commands commands;
  for (const auto& [word, mutexes] : {std::pair{"UNSUBSCRIBE", &changes.unsubscribe},
                                      std::pair{"SUBSCRIBE", &changes.subscribe}}) {
    for (const std::string& mutex : *mutexes) {
      const std::string key = lease_key(mutex);
      // Ours is the last: once it is confirmed, all is heard.
      commands.add(Words().text(word).text(key).text(key, own_end_));
    }
  }
  for (const std::string& mutex : changes.unsubscribe) {
    due_.erase(mutex);
    told_by_.erase(mutex);
  }
  constexpr milliseconds kPatience{5'000};
  if (commands.count() > 0) connection_->send(commands.bytes(), BootClock::now() + kPatience);
  return changes.next;
}

void Messages::handle(const Reply& reply, const Hint& hint) {
  if (reply.is_error()) throw failure(reply, connection_->where());
  if (reply.items.size() < 3) return;
  const std::string& kind = reply.items[0].text;
  const std::string& channel = reply.items[1].text;
  if (kind == "message") return heard(channel, reply.items[2].text, hint);
  if (kind != "subscribe" || !channel.ends_with(own_end_)) return;
  const std::string mutex(
      mutex_of(std::string_view(channel).substr(0, channel.size() - own_end_.size())));
  subscriptions_->confirmed(mutex);
  hint(mutex);  // what happened before was not heard
}

void Messages::heard(std::string_view channel, std::string_view text, const Hint& hint) {
  const Message message = parse_message(text);
  const bool ours = channel.ends_with(own_end_);
  if (ours) channel.remove_suffix(own_end_.size());
  const std::string mutex(mutex_of(channel));
  if (mutex.empty()) return;
  if (ours) {
    subscriptions_->left_queue(mutex);  // who wakes somebody takes it out of the queue
    told_by_[mutex] = message.id;
    due_.erase(mutex);
    return hint(mutex);
  }
  if (message.news == News::kReleased) {
    const auto told = told_by_.find(mutex);
    const bool known = told != told_by_.end() && told->second == message.id;
    if (known) {
      told_by_.erase(told);
      return;
    }
    const auto delay = static_cast<std::int64_t>(random_()) % kSpreadMicros;
    due_.try_emplace(mutex, BootClock::now() + std::chrono::microseconds(delay));
  }
  if (message.news == News::kAcquired && subscriptions_->place(mutex).queued) due_.erase(mutex);
}

LocalTime Messages::pass_on_due(const Hint& hint) {
  const LocalTime now = BootClock::now();
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

}  // namespace simba::redis
