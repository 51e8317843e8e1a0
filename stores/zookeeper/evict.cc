#include "stores/zookeeper/evict.h"

#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/nodes.h"

namespace simba::zookeeper {

void Evict::look_again() {
  if (is_over()) return;
  list([me = self<Evict>()](const Line& line) { me->act(line); });
}

void Evict::act(const Line& line) {
  if (acted_ || line.order.empty()) return answer_with_owner(line);
  const std::string name = line.order.front();
  handle().get(
      node(name), Handle::Watching::kNo,
      [me = self<Evict>(), name, line](int code, const std::string& data, const Stat& stat) {
        if (code == ZNONODE) return me->look_again();
        if (code != ZOK) return me->fail(code, "read the owner");
        const Wish& wish = me->wish();
        if (read_id(name, data) != wish.wire_id || static_cast<Token>(stat.czxid) != wish.token) {
          me->acted_ = true;
          return me->answer_with_owner(line);
        }
        if (me->how_ == Eviction::kKeepLease && !name.starts_with(latch_prefix(data))) {
          return me->answer(me->not_ours());
        }
        const auto done = [me, name](int result) { me->done(result, name); };
        if (me->how_ == Eviction::kFreeNow) {
          me->handle().remove(me->node(name), done);
        } else {
          // Of an owner that has gone meanwhile nothing is written: it would replace what names the
          // next, if that was evicted too.
          me->handle().set_while(me->node(name), me->container(), name, done);
        }
      });
}

Error Evict::not_ours() {
  return {Errc::kMisuse, "zookeeper at " + session().where() + ": the owner of '" + wish().mutex +
                             "' is no contender of this library, and would not hear of it: nobody "
                             "was evicted; --now (Eviction::kFreeNow) deletes its node"};
}

void Evict::done(int code, const std::string& name) {
  if (code != ZOK && code != ZNONODE) return fail(code, "evict the owner");
  acted_ = true;  // also where it has gone meanwhile
  if (how_ == Eviction::kFreeNow) session().places().erase(wish().mutex, wish().wire_id);
  if (how_ == Eviction::kKeepLease) session().evict(wish().mutex, name);
  look_again();
}

}  // namespace simba::zookeeper
