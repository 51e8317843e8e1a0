#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "simba/redis.h"
#include "testing/contract.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::testing {
namespace {

void skip(const std::string& why) { GTEST_SKIP() << why; }

// The server of SIMBA_TEST_REDIS_URL, else one that all cases share.
class RedisContract : public StoreContract {
 public:
  RedisContract() {
    if (const char* given = std::getenv("SIMBA_TEST_REDIS_URL")) {  // NOLINT(concurrency-mt-unsafe)
      url_ = given;
      return;
    }
    try {
      shared_ = std::make_unique<servers::SharedServer>("redis");
      // It has just been started, without data.
      url_ = "redis://" + shared_->address() + "?restart-guard=off";
    } catch (const servers::Unavailable& reason) {
      skip(reason.what());
    }
  }

  // Stores of one process share their connections: another name keeps these apart.
  std::shared_ptr<Store> connect() override {
    if (url_.empty()) return nullptr;
    static std::atomic<int> count{0};
    const char separator = url_.find('?') == url_.npos ? '?' : '&';
    return open_redis(
        redis_options(url_ + separator + "client-name=contract-" + std::to_string(++count)));
  }

 private:
  std::unique_ptr<servers::SharedServer> shared_;
  std::string url_;
};

SIMBA_CONTRACT(Redis, [] { return std::make_unique<RedisContract>(); })

}  // namespace
}  // namespace simba::testing
