#include "stores/zookeeper/take.h"

#include <algorithm>
#include <utility>

#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/nodes.h"

namespace simba::zookeeper {

void Take::start() {
  const bool has_place =
      session().places().keep(wish().mutex, wish().wire_id, wish().lease(), BootClock::now());
  if (has_place) {
    // The hint that made us ask may have brought the answer along.
    const auto line = session().places().take_line(wish().mutex, wish().wire_id, BootClock::now());
    return line ? decide(*line) : look_again();
  }
  if (session().places().find(wish().mutex, wish().wire_id)) {
    // Evicted, or on its way out: this wire id gets nothing any more.
    return std::make_shared<Look>(round(), wish(),
                                  [me = self<Take>()](Answer seen) { me->answer(std::move(seen)); })
        ->start();
  }
  switch (session().places().begin_join(wish().mutex, wish().wire_id,
                                        BootClock::now() + wish().lease())) {
    case Places::Doubt::kNone:
      return join(Parents::kThere);
    case Places::Doubt::kUnderWay:
      return look_again();  // carried out after it
    case Places::Doubt::kAmbiguous:
      return list_synced([me = self<Take>()](const Line& line) {
        me->find_own(latches_of(me->wish().wire_id, line.order), line);
      });
    case Places::Doubt::kGivenUp:
      return fail(ZCONNECTIONLOSS, "join the queue");
  }
}

// The answer to our creation was lost: its node may be there, and is the newest of its name. Those
// of earlier sessions go by themselves: they are never trusted, only waited for.
void Take::find_own(std::vector<std::string> names, const Line& line) {
  if (names.empty()) return join(Parents::kThere);
  const std::string name = std::move(names.back());
  names.pop_back();
  handle().get(node(name), Handle::Watching::kNo,
               [me = self<Take>(), name, names = std::move(names), line](
                   int code, const std::string& data, const Stat& stat) {
                 if (code != ZOK && code != ZNONODE) return me->fail(code, "read a node");
                 const bool is_own = code == ZOK && data == me->wish().wire_id &&
                                     stat.ephemeralOwner == me->handle().session();
                 if (!is_own) return me->find_own(names, line);
                 if (!me->add_place(name, stat)) return me->fail(ZMARSHALLINGERROR, "read a node");
                 me->decide(line);
               });
}

void Take::look_again() {
  if (is_over()) return;
  list([me = self<Take>()](const Line& line) { me->decide(line); });
}

bool Take::doubt(Places::Doubt doubt) {
  const bool is_set = session().places().set_doubt(wish().mutex, wish().wire_id, doubt,
                                                   BootClock::now() + wish().lease());
  if (doubt == Places::Doubt::kAmbiguous) session().hurry(session().places().next_due());
  return is_set;
}

// One flight: the requests are carried out in order, so the list shows the node made before it.
void Take::join(Parents parents) {
  if (parents == Parents::kMake) {
    // Also when nobody waits any more: else a slow server would be asked for ever.
    const auto made = [me = self<Take>()](int code, const std::string&, const Stat&) {
      if (code == ZOK || code == ZNODEEXISTS) me->has_root_ = true;
      if (code != ZNODEEXISTS && me->parents_code_ == ZOK) me->parents_code_ = code;
    };
    parents_code_ = ZOK;
    has_root_ = false;
    const std::string path = container();
    for (std::size_t slash = path.find('/', 1); slash != path.npos;
         slash = path.find('/', slash + 1)) {
      handle().create(path.substr(0, slash), {}, session().acl(), ZOO_CONTAINER, made);
    }
    handle().create(path, {}, session().acl(), ZOO_CONTAINER, made);
  }
  if (is_over()) {
    doubt(Places::Doubt::kNone);
    return;
  }
  if (!doubt(Places::Doubt::kUnderWay)) return fail(ZCONNECTIONLOSS, "join the queue");
  const LocalTime sent = BootClock::now();
  handle().create(
      node(latch_stem(wish().wire_id)), wish().wire_id, session().acl(), ZOO_EPHEMERAL_SEQUENTIAL,
      [me = self<Take>(), sent, parents](int code, const std::string& path, const Stat& stat) {
        me->joined(code, path, stat, sent, parents);
      });
  list([me = self<Take>()](const Line& line) {
    if (me->joined_) me->decide(line);
  });
}

void Take::joined(int code, const std::string& path, const Stat& stat, LocalTime sent,
                  Parents parents) {
  const bool is_why_missing = parents_code_ != ZOK && parents_code_ != ZNONODE;
  // The server removes containers that have been empty for a while: also between two requests.
  const bool was_removed = parents == Parents::kThere || (has_root_ && !is_why_missing);
  if (code == ZNONODE && was_removed) return join(Parents::kMake);
  if (code == ZNONODE && parents_code_ != ZOK) code = parents_code_;  // why it is missing
  const auto name = read_made(path, wish().wire_id);
  if (code == ZOK && (!name || !read_token(stat))) code = ZMARSHALLINGERROR;
  if (code != ZOK) doubt(is_ambiguous(code) ? Places::Doubt::kAmbiguous : Places::Doubt::kNone);
  if (code != ZOK) return fail(code, "join the queue");
  committed_ = session().committed(handle(), sent);
  joined_ = add_place(*name, stat);
}

bool Take::add_place(const std::string& name, const Stat& stat) {
  const auto token = read_token(stat);
  if (!token) return false;
  session().places().add({wish().mutex, wish().wire_id, name, *token, stat.ephemeralOwner},
                         wish().lease(), BootClock::now());
  session().hurry(session().places().next_due());
  return true;
}

void Take::decide(const Line& line) {
  if (is_over()) return;
  const auto place = session().places().find(wish().mutex, wish().wire_id);
  if (!place) return fail(ZSESSIONEXPIRED, "stay in the queue");  // or never got into it
  const auto mine = std::find(line.order.begin(), line.order.end(), place->name);
  if (mine == line.order.end() || place->session != handle().session()) {
    // Somebody deleted it, or it is of a session that has ended, whose nodes are never trusted:
    // back to the end of the queue, once in a call.
    session().places().erase(wish().mutex, wish().wire_id);
    if (joined_) return fail(ZCONNECTIONLOSS, "stay in the queue");
    return join(Parents::kThere);
  }
  const std::int64_t number = latch_number(*mine).value_or(-1);
  if (number < 0 || number > kLastNumber) return turn_away(*place);
  if (mine == line.order.begin()) return grant(*place, line);
  answer_as_waiter(line, *std::prev(mine));
}

// The first may have been seen there, and evicted, before it is told that it owns: from then on the
// container is not written again, and a renewal would not notice.
void Take::grant(const Place& place, const Line& line) {
  if (line.container.version == 0) return own(place, 0);
  ask_evicted(line, [me = self<Take>(), place](const std::string& name, const Container& named) {
    if (name != place.name) return me->own(place, named.version);
    me->tell({place.name, place.wire_id, place.token}, true);
  });
}

void Take::own(const Place& place, int container_version) {
  const auto running = session().places().term(wish().mutex, wish().wire_id, 0, BootClock::now());
  // The same: this node was seen at the head before its contender was told, by another of the
  // process.
  if (!running && place.token < wish().floor) return refuse(place);
  const LocalTime until = std::max(committed_, session().lives_until(handle()));
  Term term;
  Observation seen = granted(wish(), place.token, round(), until, term);
  const milliseconds enough = std::min(wish().lease(), session().lease()) / 2;
  if (seen.owner.transition_at - seen.now < enough) {
    return answer(Error(Errc::kUnreachable, "zookeeper at " + session().where() +
                                                ": it is not certain yet that the session of '" +
                                                wish().mutex + "' lives; ask again"));
  }
  term.container_version = container_version;
  if (!session().places().grant(wish().mutex, wish().wire_id, term)) {
    return fail(ZSESSIONEXPIRED, "stay in the queue");
  }
  session().hurry(term.expires);
  answer(std::move(seen));
}

// Whoever stands behind goes on meanwhile. A node that is made once the servers have passed the
// floor owns again.
void Take::refuse(const Place& place) {
  leave(place, [me = self<Take>(), place] {
    const std::string floor = std::to_string(me->wish().floor);
    me->answer(Error(Errc::kReplaced,
                     "zookeeper at " + me->session().where() + ": '" + place.mutex +
                         "' has seen token " + floor + ", but the servers are at " +
                         std::to_string(place.token) +
                         ": their data was replaced by older data, or another ensemble answers"));
  });
}

// The count of the container is nearly used up: leave, and remove the container if nobody is left.
void Take::turn_away(const Place& place) {
  leave(place, [] {});
  handle().remove(container(), [me = self<Take>()](int) {
    me->answer(Error(Errc::kUnreachable,
                     "zookeeper at " + me->session().where() + ": the count of nodes of '" +
                         me->wish().mutex +
                         "' is nearly used up; it begins anew once its queue is empty"));
  });
}

// Should the deletion fail, the session repeats it.
void Take::leave(const Place& place, std::function<void()> done) {
  session().places().leave(place.mutex, place.wire_id);
  handle().remove(node(place.name), [me = self<Take>(), place, done = std::move(done)](int code) {
    if (code == ZOK || code == ZNONODE) me->session().places().erase(place.mutex, place.wire_id);
    done();
  });
}

}  // namespace simba::zookeeper
