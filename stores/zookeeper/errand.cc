#include "stores/zookeeper/errand.h"

#include <algorithm>
#include <utility>

#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/nodes.h"

namespace simba::zookeeper {
namespace {

using std::chrono::duration_cast;

// The servers have no clock that a client could read. Times in answers are of this machine's, and
// are compared with each other only.
StoreTime store_time(LocalTime at) {
  return StoreTime{duration_cast<milliseconds>(at.time_since_epoch())};
}

// Who owns is told by the first: a long queue is not copied for that.
Line head_of(const Line& line) { return {{line.order.front()}, line.container}; }

}  // namespace

Wish Wish::of(const Claim& claim) {
  return {std::string(claim.mutex), std::string(claim.wire_id), claim.token, claim.floor, claim.ttl,
          claim.transition};
}

void Errand::answer(Answer result) {
  if (!answered_.test_and_set()) std::exchange(finish_, nullptr)(std::move(result));
}

void Errand::fail(int code, const std::string& doing) {
  answer(failure(code, doing + " for '" + wish_.mutex + "'", session().where()));
}

bool Errand::is_over() {
  if (BootClock::now() < round_.deadline) return false;
  answer(failure(ZOPERATIONTIMEOUT, "ask for '" + wish_.mutex + "'", session().where()));
  return true;
}

void Errand::list(std::function<void(const Line&)> seen) {
  handle().children(container(), [me = shared_from_this(), seen = std::move(seen)](
                                     int code, std::vector<std::string> names, const Stat& stat) {
    if (code == ZNONODE) return seen({});
    if (code != ZOK) return me->fail(code, "list the queue");
    seen({latch_order(std::move(names)), read_container(stat)});
  });
}

// Two flights: in one the connection could be lost between the two, and the next server, which may
// lag, would answer the list alone. Once the sync is answered, the driver connects to none that
// lags behind it.
void Errand::list_synced(std::function<void(const Line&)> seen) {
  handle().sync(container(), [me = shared_from_this(), seen = std::move(seen)](int code) mutable {
    if (code != ZOK) return me->fail(code, "look for a node");
    me->list(std::move(seen));
  });
}

void Errand::answer_with_owner(const Line& line) {
  if (line.order.empty()) {
    return answer(Observation{MutexOwner::none(), store_time(BootClock::now())});
  }
  const std::string& first = line.order.front();
  // Who observes wants to hear of the end of this node, so it is read again even if it is known.
  if (session().leaders().is_observed(wish_.mutex)) return learn_leader(line);
  if (const auto own = session().places().at(wish_.mutex, first)) {
    return learn_eviction(line, {first, own->first.wire_id, own->first.token});
  }
  if (const auto known = session().leaders().find(wish_.mutex, first)) {
    return learn_eviction(line, *known);
  }
  learn_leader(line);
}

void Errand::learn_leader(const Line& line) {
  const std::string& first = line.order.front();
  const bool hears = session().leaders().is_observed(wish_.mutex) &&
                     session().places().watch_leader(wish_.mutex, first) != Places::Hearing::kFull;
  const auto watching = hears ? Handle::Watching::kYes : Handle::Watching::kNo;
  handle().get(node(first), watching,
               [me = shared_from_this(), line = head_of(line)](int code, std::string data,
                                                               const Stat& stat) {
                 if (code == ZNONODE) return me->look_again();
                 if (code != ZOK) return me->fail(code, "read the owner");
                 const auto token = read_token(stat);
                 if (!token) return me->fail(ZMARSHALLINGERROR, "read the owner");
                 const std::string& name = line.order.front();
                 Leader leader{name, read_id(name, std::move(data)), *token};
                 me->session().leaders().learn(me->wish_.mutex, leader);
                 me->learn_eviction(line, leader);
               });
}

void Errand::learn_eviction(const Line& line, const Leader& leader) {
  ask_evicted(line, [me = shared_from_this(), leader](const std::string& name, const Container&) {
    me->tell(leader, name == leader.name);
  });
}

void Errand::ask_evicted(const Line& line, Evicted seen) {
  if (const auto known = session().leaders().evicted(wish_.mutex, line.container)) {
    return seen(*known, line.container);
  }
  handle().get(container(), Handle::Watching::kNo,
               [me = shared_from_this(), seen = std::move(seen)](int code, const std::string& data,
                                                                 const Stat& stat) {
                 if (code == ZNONODE) return me->look_again();
                 if (code != ZOK) return me->fail(code, "read the container");
                 const Container container = read_container(stat);
                 me->session().leaders().learn_eviction(me->wish_.mutex, container, data);
                 seen(data, container);
               });
}

// The first node is there, so the mutex is not free, whatever its lease: nobody can enter before it
// is deleted.
void Errand::tell(const Leader& leader, bool evicted) {
  const LocalTime now = BootClock::now();
  const StoreTime store_now = store_time(now);
  MutexOwner owner;
  owner.id = leader.id;
  owner.token = leader.token;
  owner.transition_at = store_now + session().lease();
  if (const auto own = session().places().at(wish_.mutex, leader.name)) {
    owner.acquired_at = store_time(own->second.acquired);
    owner.ttl_at = store_time(own->second.ttl_end);
    owner.transition_at = std::max(store_time(own->second.expires), store_now + milliseconds{1});
  }
  if (evicted) session().evict(wish_.mutex, leader.name);
  // R3: nobody becomes owner by what was read. Only a grant names the one who asks.
  if (evicted || (claims() && leader.id == wish_.wire_id)) owner.id.clear();
  answer(Observation{std::move(owner), store_now});
}

void Errand::answer_as_waiter(const Line& line, const std::string& predecessor) {
  const auto hearing = session().places().watch_node(wish_.mutex, wish_.wire_id, predecessor);
  if (hearing != Places::Hearing::kNew) return answer_with_owner(line);
  handle().get(node(predecessor), Handle::Watching::kYes,
               [me = shared_from_this(), line = head_of(line), predecessor](
                   int code, std::string data, const Stat& stat) {
                 if (code != ZOK)
                   me->session().places().forget_node(me->wish_.mutex, me->wish_.wire_id);
                 if (code == ZNONODE) return me->look_again();
                 if (code != ZOK) return me->fail(code, "watch the waiter before");
                 const auto token = read_token(stat);
                 if (token && predecessor == line.order.front()) {
                   me->session().leaders().learn(
                       me->wish_.mutex,
                       {predecessor, read_id(predecessor, std::move(data)), *token});
                 }
                 me->answer_with_owner(line);
               });
}

void Look::look_again() {
  if (is_over()) return;
  list([me = self<Look>()](const Line& line) { me->answer_with_owner(line); });
}

// G holds from before the call began; the answer states it from its own time on.
Observation granted(const Wish& wish, Token token, const Round& round, LocalTime lives_until,
                    Term& term) {
  const LocalTime now = BootClock::now();
  const nanoseconds certain = std::max(lives_until - round.began, nanoseconds::zero());
  const auto lease = std::min(wish.lease(), duration_cast<milliseconds>(certain));
  // Where the session allows less than was asked for, two thirds of it are the ttl.
  const auto ttl = std::min(wish.ttl, lease < wish.lease() ? lease * 2 / 3 : wish.ttl);
  if (term.acquired == LocalTime{}) term.acquired = now;
  term.ttl_end = now + ttl;
  term.expires = now + lease + milliseconds{1};
  const StoreTime store_now = store_time(now);
  MutexOwner owner;
  owner.id = wish.wire_id;
  owner.token = token;
  owner.acquired_at = store_time(term.acquired);
  owner.ttl_at = store_now + ttl;
  owner.transition_at = store_now + lease;
  return {std::move(owner), store_now};
}

}  // namespace simba::zookeeper
