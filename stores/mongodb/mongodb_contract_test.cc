#include <chrono>
#include <memory>
#include <random>
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

// On a server of the user's: a collection that nobody else has, and that goes with the program.
class OwnCollection : public ::testing::Environment {
 public:
  static OwnCollection& of_this_program() {
    static auto* const one = new OwnCollection;  // gtest deletes it
    return *one;
  }
  MongodbOptions in(const std::string& url) {
    MongodbOptions options = mongodb_options(url);
    url_ = options.uri;
    options.database = "simba_test";
    options.collection = name_;
    return options;
  }
  void TearDown() override {
    if (!url_.empty()) servers::drop_mongodb_collection(url_, "simba_test", name_);
  }

 private:
  const std::string name_ = "contract_" + std::to_string(std::random_device{}());
  std::string url_;
};
[[maybe_unused]] auto* const kOwnCollection =
    ::testing::AddGlobalTestEnvironment(&OwnCollection::of_this_program());

class MongodbContract : public ServerContract {
 public:
  MongodbContract() : ServerContract("mongodb-users") {}

 private:
  std::shared_ptr<Store> open() override {
    const std::string url = as("contender:PASSWORD", url_apart("appName=contract-"));
    [[maybe_unused]] static const bool has_users =
        !server().is_shared() || make_users(server().url());
    auto store = open_mongodb(server().is_shared() ? mongodb_options(url)
                                                   : OwnCollection::of_this_program().in(url));
    store->list("", {}, 1, BootClock::now() + std::chrono::seconds(20));
    return store;
  }
};

SIMBA_CONTRACT(Mongodb, [] { return std::make_unique<MongodbContract>(); })

}  // namespace
}  // namespace simba::testing
