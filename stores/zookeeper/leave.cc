#include "stores/zookeeper/leave.h"

#include "stores/zookeeper/latch.h"

namespace simba::zookeeper {

void Leave::start() {
  const auto place = session().places().find(wish().mutex, wish().wire_id);
  if (place && (wish().token == 0 || wish().token == place->token)) {
    session().places().leave(wish().mutex, wish().wire_id);
    return remove_node(place->name);
  }
  if (place) return answer(Observation{});
  // Not ours, as far as this session knows: a node whose creation was never answered, or of another
  // session.
  look_again();
}

void Leave::look_again() {
  if (is_over()) return;
  list_synced([me = self<Leave>()](const Line& line) {
    const std::string prefix = latch_prefix(me->wish().wire_id);
    for (const std::string& name : line.order) {
      if (name.starts_with(prefix)) return me->check_node(name);
    }
    me->not_there();
  });
}

void Leave::check_node(const std::string& name) {
  handle().get(node(name), Handle::Watching::kNo,
               [me = self<Leave>(), name](int code, const std::string& data, const Stat& stat) {
                 if (code == ZNONODE) return me->not_there();
                 if (code != ZOK) return me->fail(code, "read a node");
                 const bool is_term =
                     me->wish().token == 0 || me->wish().token == static_cast<Token>(stat.czxid);
                 if (data != me->wish().wire_id || !is_term) return me->answer(Observation{});
                 me->remove_node(name);
               });
}

void Leave::not_there() {
  session().places().end_ambiguity(wish().mutex, wish().wire_id);
  answer(Observation{});
}

void Leave::remove_node(const std::string& name) {
  handle().remove(node(name), [me = self<Leave>()](int code) {
    if (code != ZOK && code != ZNONODE) return me->fail(code, "leave the queue");
    me->session().places().erase(me->wish().mutex, me->wish().wire_id);
    me->answer(Observation{});
  });
}

}  // namespace simba::zookeeper
