#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "simba/mongodb.h"
#include "testing/contract.h"
#include "testing/servers/mongodb.h"
#include "testing/servers/turn.h"

// Some cases of the contract suite on three servers whose primaries step down meanwhile.
namespace simba::testing {
namespace {

using namespace std::chrono_literals;

struct SharedSet {
  static SharedSet& place() {
    static SharedSet shared;
    return shared;
  }
  SharedSet() { set.start(); }
  servers::Turn turn{"mongod", 2};
  servers::MongodbSet set;
};

class MongodbSetContract : public StoreContract {
 public:
  MongodbSetContract() try {
    servers::need_mongodb();
    set_ = &SharedSet::place().set;
    stepping_ = std::jthread([this](const std::stop_token& stop) { go_on(stop); });
  } catch (const servers::Unavailable& reason) {
    skip(reason.what());
  }

  std::shared_ptr<Store> connect() override {
    if (set_ == nullptr) return nullptr;
    static std::atomic<int> count{0};
    return open_mongodb(mongodb_options(set_->url("appName=contract-" + std::to_string(++count))));
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
  void go_on(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      set_->step_down();
      set_->await_all();
      for (int i = 0; i < 160 && !stop.stop_requested(); ++i) std::this_thread::sleep_for(50ms);
    }
  }

  servers::MongodbSet* set_ = nullptr;
  std::jthread stepping_;
};

[[maybe_unused]] const bool added =
    add_contract("MongodbSet", [] { return std::make_unique<MongodbSetContract>(); },
                 {"Schedule", "MultiContend"});

}  // namespace
}  // namespace simba::testing
