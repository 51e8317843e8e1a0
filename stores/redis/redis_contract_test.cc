#include <memory>

#include "simba/redis.h"
#include "stores/kit/server_contract.h"

namespace simba::testing {
namespace {

class RedisContract : public ServerContract {
 public:
  RedisContract() : ServerContract("redis") {}

 private:
  std::shared_ptr<Store> open() override {
    return open_redis(redis_options(url_apart("client-name=contract-")));
  }
};

SIMBA_CONTRACT(Redis, [] { return std::make_unique<RedisContract>(); })

}  // namespace
}  // namespace simba::testing
