#include "stores/zookeeper/renewal.h"

#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/nodes.h"

namespace simba::zookeeper {

void Renewal::start() {
  const LocalTime now = BootClock::now();
  Places& places = round_.session->places();
  std::vector<Item> running;
  for (Item& item : items_) {
    const Wish& wish = item.wish;
    const auto place = places.find(wish.mutex, wish.wire_id);
    const auto term = places.term(wish.mutex, wish.wire_id, wish.token, now);
    const bool is_ours = place && term && place->session == round_.handle->session();
    if (!is_ours || !places.begin_renewal(wish.mutex, wish.wire_id, wish.token, now)) {
      look(item);
      continue;
    }
    versions_.emplace_back(round_.session->container(wish.mutex), term->container_version);
    versions_.emplace_back(round_.session->node(wish.mutex, place->name), 0);
    running.push_back(std::move(item));
  }
  items_ = std::move(running);
  if (items_.empty()) return;
  round_.handle->check(versions_,
                       [me = shared_from_this(), now](int code, const std::vector<int>& each) {
                         me->checked(code, each, now);
                       });
}

void Renewal::checked(int code, const std::vector<int>& each, LocalTime sent) {
  Places& places = round_.session->places();
  for (const Item& item : items_) places.end_renewal(item.wish.mutex, item.wish.wire_id);
  if (code == ZOK) {
    const LocalTime until = round_.session->committed(*round_.handle, sent);
    for (Item& item : items_) renewed(item, until);
    return;
  }
  const bool is_of_one = code == ZBADVERSION || code == ZNONODE || code == ZNOAUTH;
  if (!is_of_one || (code == ZNOAUTH && items_.size() == 1)) {
    for (Item& item : items_) {
      item.finish(failed(code, item.wish));
    }
    return;
  }
  if (items_.size() == 1) return refused(items_[0], each.at(1));
  for (Item& item : items_) {
    std::vector<Item> alone;
    alone.push_back(std::move(item));
    std::make_shared<Renewal>(round_, std::move(alone))->start();
  }
}

void Renewal::renewed(Item& item, LocalTime until) {
  const Wish& wish = item.wish;
  Places& places = round_.session->places();
  const auto place = places.find(wish.mutex, wish.wire_id);
  auto term = places.term(wish.mutex, wish.wire_id, wish.token, LocalTime::min());
  if (!place || !term) return item.finish(failed(ZSESSIONEXPIRED, wish));
  if (until <= round_.began) {
    return item.finish(Error(Errc::kUnreachable, "zookeeper at " + round_.session->where() +
                                                     ": it is not certain that the session of '" +
                                                     wish.mutex + "' lives; ask again"));
  }
  Observation seen = granted(wish, place->token, round_, until, *term);
  if (!places.grant(wish.mutex, wish.wire_id, *term)) return look(item);
  round_.session->hurry(term->expires);
  item.finish(std::move(seen));
}

// The transaction with this one alone failed: it was evicted, or its node is gone or was written.
void Renewal::refused(Item& item, int node_code) {
  const Wish& wish = item.wish;
  if (node_code == ZNONODE) {
    round_.session->places().erase(wish.mutex, wish.wire_id);
    return look(item);
  }
  if (node_code == ZBADVERSION) {
    // Somebody wrote to it: it is not what was granted any more. It goes when its lease ends.
    const auto place = round_.session->places().find(wish.mutex, wish.wire_id);
    if (place) round_.session->evict(wish.mutex, place->name);
    return look(item);
  }
  read_eviction(item);
}

void Renewal::read_eviction(Item& item) {
  const std::string container = round_.session->container(item.wish.mutex);
  round_.handle->get(
      container, Handle::Watching::kNo,
      [me = shared_from_this(), &item](int code, const std::string& data, const Stat& stat) {
        const Wish& wish = item.wish;
        Places& places = me->round_.session->places();
        const auto place = places.find(wish.mutex, wish.wire_id);
        if (code == ZNONODE || !place) {
          places.erase(wish.mutex, wish.wire_id);
          return me->look(item);
        }
        if (code != ZOK) return item.finish(me->failed(code, wish));
        me->round_.session->leaders().learn_eviction(wish.mutex, read_container(stat), data);
        if (data == place->name) {
          places.evict(wish.mutex, place->name);
          return me->look(item);
        }
        if (BootClock::now() >= me->round_.deadline) {
          return item.finish(me->failed(ZOPERATIONTIMEOUT, wish));
        }
        // Somebody else was named: go on under the new version.
        places.update_container(wish.mutex, wish.wire_id, stat.version);
        std::vector<Item> alone;
        alone.push_back(std::move(item));
        std::make_shared<Renewal>(me->round_, std::move(alone))->start();
      });
}

Error Renewal::failed(int code, const Wish& wish) const {
  return failure(code, "renew '" + wish.mutex + "'", round_.session->where());
}

void Renewal::look(Item& item) {
  std::make_shared<Look>(round_, std::move(item.wish), std::move(item.finish))->start();
}

}  // namespace simba::zookeeper
