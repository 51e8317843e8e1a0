#include <cstdlib>
#include <memory>
#include <string>

#include "simba/zookeeper.h"
#include "testing/contract.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::testing {
namespace {

void skip(const std::string& why) { GTEST_SKIP() << why; }

// The server of SIMBA_TEST_ZOOKEEPER_URL, else one that all cases share.
class ZookeeperContract : public StoreContract {
 public:
  ZookeeperContract() {
    if (const char* given =
            std::getenv("SIMBA_TEST_ZOOKEEPER_URL")) {  // NOLINT(concurrency-mt-unsafe)
      url_ = given;
      return;
    }
    try {
      shared_ = std::make_unique<servers::SharedServer>("zookeeper");
      // Long enough for the leases of the suite: 90 s, and what the store keeps back.
      url_ = "zookeeper://" + shared_->address() + "?tick=500&session-timeout=120000";
    } catch (const servers::Unavailable& reason) {
      skip(reason.what());
    }
  }

  // Stores of one process share their session: it is what a process has.
  std::shared_ptr<Store> connect() override {
    return url_.empty() ? nullptr : open_zookeeper(zookeeper_options(url_));
  }

 private:
  std::unique_ptr<servers::SharedServer> shared_;
  std::string url_;
};

SIMBA_CONTRACT(Zookeeper, [] { return std::make_unique<ZookeeperContract>(); })

}  // namespace
}  // namespace simba::testing
