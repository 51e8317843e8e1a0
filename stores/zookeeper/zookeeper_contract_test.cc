#include <memory>
#include <string>

#include "simba/zookeeper.h"
#include "stores/kit/server_contract.h"

namespace simba::testing {
namespace {

class ZookeeperContract : public ServerContract {
 public:
  ZookeeperContract() : ServerContract("zookeeper") {}

 private:
  // Stores of one process share their session: it is what a process has.
  std::shared_ptr<Store> open() override {
    // Long enough for the leases of the suite: 90 s, and what the store keeps back.
    // Below a base of its own user, whose nodes others may read (docs/zookeeper.md, privileges).
    const std::string more =
        server().is_shared() ? "session-timeout=120000&base=/contract&acl=creator-read" : "";
    return open_zookeeper(zookeeper_options(as("contender:secret", server().url(more))));
  }
};

SIMBA_CONTRACT(Zookeeper, [] { return std::make_unique<ZookeeperContract>(); })

}  // namespace
}  // namespace simba::testing
