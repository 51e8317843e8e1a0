#include <chrono>
#include <memory>

#include "simba/mongodb.h"
#include "stores/kit/server_contract.h"

namespace simba::testing {
namespace {

class MongodbContract : public ServerContract {
 public:
  MongodbContract() : ServerContract("mongodb") {}

 private:
  std::shared_ptr<Store> open() override {
    auto store = open_mongodb(mongodb_options(url_apart("appName=contract-")));
    store->list("", {}, 1, BootClock::now() + std::chrono::seconds(20));
    return store;
  }
};

SIMBA_CONTRACT(Mongodb, [] { return std::make_unique<MongodbContract>(); })

}  // namespace
}  // namespace simba::testing
