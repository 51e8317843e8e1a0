#include "stores/zookeeper/leave.h"

#include <utility>

#include "stores/zookeeper/latch.h"

namespace simba::zookeeper {

void Leave::start() {
  const auto place = session().places().find(wish().mutex, wish().wire_id);
  if (place && (wish().token == 0 || wish().token == place->token)) {
    session().places().leave(wish().mutex, wish().wire_id);
    return remove_node(place->name, [me = self<Leave>()] { me->answer(Observation{}); });
  }
  if (place) return answer(Observation{});
  // Not ours, as far as this session knows: a node whose creation was never answered, or of another
  // session.
  look_again();
}

void Leave::look_again() {
  if (is_over()) return;
  list_synced([me = self<Leave>()](const Line& line) {
    me->remove_each(latches_of(me->wish().wire_id, line.order));
  });
}

void Leave::remove_each(std::vector<std::string> names) {
  if (names.empty()) return none_left();
  const std::string name = std::move(names.back());
  names.pop_back();
  handle().get(node(name), Handle::Watching::kNo,
               [me = self<Leave>(), name, names = std::move(names)](
                   int code, const std::string& data, const Stat& stat) {
                 if (code != ZOK && code != ZNONODE) return me->fail(code, "read a node");
                 const auto go_on = [me, names] { me->remove_each(names); };
                 if (code == ZNONODE || data != me->wish().wire_id) return go_on();
                 const Token token = me->wish().token;
                 if (token == 0 || token == static_cast<Token>(stat.czxid)) {
                   return me->remove_node(name, go_on);
                 }
                 me->keeps_one_ = true;
                 go_on();
               });
}

void Leave::none_left() {
  if (!keeps_one_) session().places().end_ambiguity(wish().mutex, wish().wire_id);
  answer(Observation{});
}

void Leave::remove_node(const std::string& name, std::function<void()> done) {
  handle().remove(node(name), [me = self<Leave>(), name, done = std::move(done)](int code) {
    if (code != ZOK && code != ZNONODE) return me->fail(code, "leave the queue");
    const auto place = me->session().places().find(me->wish().mutex, me->wish().wire_id);
    if (place && place->name == name) me->session().places().erase(place->mutex, place->wire_id);
    done();
  });
}

}  // namespace simba::zookeeper
