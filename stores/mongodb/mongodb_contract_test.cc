#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "simba/mongodb.h"
#include "testing/contract.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::testing {
namespace {

// The server of SIMBA_TEST_MONGODB_URL, else a replica set of one that all cases share.
class MongodbContract : public StoreContract {
 public:
  MongodbContract() {
    if (const char* given =
            std::getenv("SIMBA_TEST_MONGODB_URL")) {  // NOLINT(concurrency-mt-unsafe)
      url_ = given;
      return;
    }
    try {
      shared_ = std::make_unique<servers::SharedServer>("mongodb");
      url_ = shared_->address();
    } catch (const servers::Unavailable& reason) {
      unavailable_ = reason.what();
    }
  }

  // Stores of one process share their change stream: another name keeps these apart.
  std::shared_ptr<Store> connect() override {
    if (!unavailable_.empty()) {
      [&] { GTEST_SKIP() << unavailable_; }();
      return nullptr;
    }
    static std::atomic<int> count{0};
    const std::string name = "appName=contract-" + std::to_string(++count);
    auto store =
        open_mongodb(mongodb_options(url_ + (url_.find('?') == url_.npos ? "?" : "&") + name));
    store->list("", 1, BootClock::now() + std::chrono::seconds(20));
    return store;
  }

 private:
  std::unique_ptr<servers::SharedServer> shared_;
  std::string url_, unavailable_;
};

SIMBA_CONTRACT(Mongodb, [] { return std::make_unique<MongodbContract>(); })

}  // namespace
}  // namespace simba::testing
