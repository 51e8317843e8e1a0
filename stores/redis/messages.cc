#include "stores/redis/messages.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "simba/error.h"
#include "stores/redis/names.h"

namespace simba::redis {
namespace {

// True: the bell has rung.
bool wait(int connection, int bell, int interrupt, LocalTime until) {
  pollfd sources[] = {{connection, POLLIN, 0}, {bell, POLLIN, 0}, {interrupt, POLLIN, 0}};
  const auto left = std::max<nanoseconds::rep>((until - BootClock::now()).count(), 0);
  const timespec time{static_cast<time_t>(left / 1'000'000'000),
                      static_cast<long>(left % 1'000'000'000)};
  const int ready =
      ppoll(sources, std::size(sources), until == LocalTime::max() ? nullptr : &time, nullptr);
  return ready > 0 && sources[1].revents != 0;
}

constexpr milliseconds kQuiet{3'000};     // without a word
constexpr milliseconds kPatience{3'000};  // for an answer, or with a full socket

}  // namespace

Messages::Messages(std::unique_ptr<Connection> connection, const Node* node,
                   std::shared_ptr<Subscriptions> subscriptions, std::shared_ptr<const Bell> bell,
                   const std::string& id)
    : connection_(std::move(connection)),
      node_(node),
      subscriptions_(std::move(subscriptions)),
      bell_(std::move(bell)),
      inbox_(subscriptions_, id) {
  subscriptions_->lost(node_);  // by the connection before
}

Messages::~Messages() { subscriptions_->lost(node_); }

void Messages::begin(LocalTime deadline, const kit::StopSignal& stop, const Hint& hint) {
  next_look_ = reconcile(BootClock::now());
  while (subscriptions_->awaits_answer(node_) && !stop.is_requested() &&
         BootClock::now() < deadline) {
    Replies replies;
    connection_->await(replies, deadline, &stop);
    take(replies, hint);
  }
}

void Messages::read_until(int interrupt, LocalTime until, const Hint& hint) {
  const LocalTime now = BootClock::now();
  if (now >= next_look_) next_look_ = reconcile(now);
  LocalTime next = std::min({until, next_look_, next_probe(), inbox_.pass_on_due(now, hint)});
  if (connection_->has_more()) next = now;
  if (wait(connection_->descriptor(), bell_->descriptor(), interrupt, next)) {
    bell_->quiet();
    next_look_ = {};
  }
  Replies replies;
  connection_->receive(replies);
  if (replies.empty()) return probe(BootClock::now());
  take(replies, hint);
}

void Messages::take(const Replies& replies, const Hint& hint) {
  if (replies.empty()) return;
  last_heard_ = BootClock::now();
  probed_ = {};
  for (const Reply& reply : replies) {
    inbox_.take(reply, connection_->where(), last_heard_, hint);
  }
}

LocalTime Messages::next_probe() const {
  return probed_ == LocalTime{} ? last_heard_ + kQuiet : probed_ + kPatience;
}

// After a look at what has come: a process that was stopped itself has missed nothing.
void Messages::probe(LocalTime now) {
  if (now < next_probe()) return;
  if (probed_ != LocalTime{}) {
    const auto silent = std::chrono::duration_cast<std::chrono::seconds>(now - last_heard_);
    throw Error(Errc::kUnreachable, connection_->where() + ": the server has not answered for " +
                                        std::to_string(silent.count()) + " s");
  }
  connection_->send(Commands().add({"PING"}).bytes(), now + kPatience);
  probed_ = now;
}

// Asks for what is wanted. Returns when to look again.
LocalTime Messages::reconcile(LocalTime now) {
  const Subscriptions::Changes changes = subscriptions_->changes(node_, now);
  Commands commands;
  for (const auto& [word, mutexes] : {std::pair{"UNSUBSCRIBE", &changes.unsubscribe},
                                      std::pair{"SUBSCRIBE", &changes.subscribe}}) {
    for (const std::string& mutex : *mutexes) {
      const std::string key = lease_key(mutex);
      // Ours is the last: once it is confirmed, all is heard.
      commands.add(Words().text(word).text(key).text(key, inbox_.own_end()));
    }
  }
  for (const std::string& mutex : changes.unsubscribe) inbox_.forget(mutex);
  if (commands.count() > 0) connection_->send(commands.bytes(), BootClock::now() + kPatience);
  return changes.next;
}

}  // namespace simba::redis
