#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stores/zookeeper/zookeeper_fixture.h"

namespace simba::zookeeper {

// Cases with a server of our own, to which stores of short sessions connect.
class FaultTest : public OwnServerTest {
 protected:
  // Through the relay, or straight.
  ZookeeperOptions options(milliseconds session_timeout = 1200ms, milliseconds tick = 200ms) const {
    ZookeeperOptions made;
    made.servers = relay ? "127.0.0.1:" + std::to_string(relay->port()) : servers;
    made.session_timeout = session_timeout;
    made.tick = tick;
    return made;
  }
  std::shared_ptr<Store> connect() const { return open_alone(options()); }
  std::shared_ptr<Store> connect_straight(milliseconds session_timeout = 30s) const {
    ZookeeperOptions made = options(session_timeout);
    made.servers = servers;
    return open_alone(made);
  }
  std::vector<std::string> queue() { return raw().children(path(m)); }
  void make_container(Store& store) const {
    take(store, m, "before~1");
    release(store, m, "before~1");
  }
};

}  // namespace simba::zookeeper
