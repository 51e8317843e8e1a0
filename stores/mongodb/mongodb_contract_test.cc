#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "simba/mongodb.h"
#include "stores/kit/documented.h"
#include "stores/kit/server_contract.h"
#include "testing/servers/mongodb.h"

namespace simba::testing {
namespace {

// As docs/mongodb.md tells an administrator to. Another process may have done so already.
bool make_users(const std::string& url) {
  const std::string page = kit::documented(SIMBA_DOCS "/mongodb.md", "createRole");
  for (const std::string& command : kit::commands_in(page)) {
    try {
      servers::run_mongodb_command(url, command);
    } catch (const std::runtime_error& error) {
      if (std::string_view(error.what()).find("already exists") == std::string_view::npos) throw;
    }
  }
  return true;
}

class MongodbContract : public ServerContract {
 public:
  MongodbContract() : ServerContract("mongodb-users") {}

 private:
  std::shared_ptr<Store> open() override {
    [[maybe_unused]] static const bool has_users =
        !server().is_shared() || make_users(server().url());
    auto store =
        open_mongodb(mongodb_options(as("contender:PASSWORD", url_apart("appName=contract-"))));
    store->list("", {}, 1, BootClock::now() + std::chrono::seconds(20));
    return store;
  }
};

SIMBA_CONTRACT(Mongodb, [] { return std::make_unique<MongodbContract>(); })

}  // namespace
}  // namespace simba::testing
