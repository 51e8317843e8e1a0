#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "simba/redis.h"
#include "stores/kit/documented.h"
#include "stores/kit/server_contract.h"
#include "stores/redis/redis_fixture.h"

namespace simba::testing {
namespace {

// As docs/redis.md tells an administrator to.
bool make_users(const std::string& url) {
  redis::Admin admin(url);
  std::istringstream page(kit::documented(SIMBA_DOCS "/redis.md", "ACL SETUSER"));
  std::vector<std::string> command;
  const auto run = [&] {
    if (!command.empty() && admin(command) != "OK") throw std::runtime_error("no user was made");
    command.clear();
  };
  for (std::string word; page >> word; command.push_back(word)) {
    if (word == "ACL") run();
  }
  run();
  return true;
}

class RedisContract : public ServerContract {
 public:
  RedisContract() : ServerContract("redis") {}

 private:
  std::shared_ptr<Store> open() override {
    [[maybe_unused]] static const bool has_users =
        !server().is_shared() || make_users(server().url());
    return open_redis(redis_options(as("contender:PASSWORD", url_apart("client-name=contract-"))));
  }
};

SIMBA_CONTRACT(Redis, [] { return std::make_unique<RedisContract>(); })

}  // namespace
}  // namespace simba::testing
