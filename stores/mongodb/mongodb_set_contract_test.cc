#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "simba/mongodb.h"
#include "testing/contract.h"
#include "testing/patient_store.h"
#include "testing/servers/mongodb.h"
#include "testing/servers/turn.h"

// Some cases of the contract suite on three servers, on three whose primaries step down meanwhile,
// and on one that is no replica set.
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
  enum class Primaries { kStay, kStepDown };

  explicit MongodbSetContract(Primaries primaries) try {
    servers::need_mongodb();
    set_ = &SharedSet::place().set;
    if (primaries == Primaries::kStay) {
      set_->await_all();  // a case before this one may have made them step down
    } else {
      stepping_ = std::jthread([this](const std::stop_token& stop) { go_on(stop); });
    }
  } catch (const servers::Unavailable& reason) {
    skip(reason.what());
  }

  ~MongodbSetContract() override {
    if (is_used_) {
      EXPECT_GE(step_downs_, 1) << "none fell into the case";
    }
  }

  std::shared_ptr<Store> connect() override {
    if (set_ == nullptr) return nullptr;
    static std::atomic<int> count{0};
    auto store = std::make_shared<PatientStore>(
        open_mongodb(mongodb_options(set_->url("appName=contract-" + std::to_string(++count)))));
    if (stepping_.joinable()) await_step_down(*store);
    return store;
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
  // The first store of a case knows a primary that is none any more when the case begins: the
  // shortest ones would be over before.
  void await_step_down(Store& store) {
    const std::string_view some = "some";
    store.observe({&some, 1}, BootClock::now() + 30s);
    is_used_ = true;
    for (int i = 0; i < 600 && step_downs_ == 0; ++i) std::this_thread::sleep_for(50ms);
  }
  void go_on(const std::stop_token& stop) {
    while (!stop.stop_requested() && !is_used_) std::this_thread::sleep_for(5ms);
    while (!stop.stop_requested()) {
      set_->step_down();
      ++step_downs_;
      set_->await_all();
      for (int i = 0; i < 160 && !stop.stop_requested(); ++i) std::this_thread::sleep_for(50ms);
    }
  }

  servers::MongodbSet* set_ = nullptr;
  std::atomic<bool> is_used_{false};
  std::atomic<int> step_downs_{0};
  std::jthread stepping_;
};

// A server alone, where nobody is told of anything: one for all cases.
class MongodbAloneContract : public StoreContract {
 public:
  MongodbAloneContract() try {
    servers::need_mongodb();
    static servers::MongodbServer alone{settings()};
    server_ = &alone;
    if (!server_->is_running()) server_->start();
  } catch (const servers::Unavailable& reason) {
    skip(reason.what());
  }

  std::shared_ptr<Store> connect() override {
    if (server_ == nullptr) return nullptr;
    static std::atomic<int> count{0};
    return open_mongodb(
        mongodb_options(server_->url({}, "appName=alone-" + std::to_string(++count))));
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
  static servers::MongodbSettings settings() {
    servers::MongodbSettings made;
    made.kind = servers::MongodbSettings::Kind::kAlone;
    return made;
  }

  servers::MongodbServer* server_ = nullptr;
};

ContractFactory set_whose(MongodbSetContract::Primaries primaries) {
  return [primaries] { return std::make_unique<MongodbSetContract>(primaries); };
}

[[maybe_unused]] const bool kAdded =
    add_contract("MongodbSet", set_whose(MongodbSetContract::Primaries::kStay),
                 {"AFreeMutexIsTaken",
                  "EveryConnectionSeesTheSameOwner",
                  "ARenewalKeepsTheTokenAndExtendsTheLease",
                  "ARenewalNeverRetakesWhatHasExpired",
                  "ALateReleaseOfAnEarlierTermChangesNothing",
                  "ALateRenewalOfAnEarlierTermChangesNothing",
                  "TokensGrowOverReleasesExpiriesEvictionsAndReconnects",
                  "OfManyWhoClaimAtOnceOneIsGranted",
                  "AHundredClaimsAreAnsweredInOrder",
                  "ManyMutexesOfOneProcessAreAllRenewed",
                  "AnEvictionTakesTheNameAndKeepsTheLease",
                  "AnEvictedOwnerLosesAndNobodyEntersEarly",
                  "AReleaseHandsOverByAHintAlone",
                  "AWaiterGetsTheMutexWhenItIsUnlocked",
                  "AnAmbiguousLockIsResolvedAndNotLeftBehind",
                  "OnReleasedOfTheOldOwnerPrecedesOnAcquiredOfTheNext",
                  "Start",
                  "Restart",
                  "Guard",
                  "Schedule"}) &&
    add_contract("MongodbSetStepsDown", set_whose(MongodbSetContract::Primaries::kStepDown),
                 {"Schedule", "MultiContend", "Start", "Restart"}) &&
    add_contract(
        "MongodbAlone", [] { return std::make_unique<MongodbAloneContract>(); },
        {"AFreeMutexIsTaken", "AHeldMutexIsNotTakenByAnother",
         "ARepeatedTakeOfTheSameWireIdKeepsItsToken", "ALateRenewalOfAnEarlierTermChangesNothing",
         "NobodyEntersBeforeTheTransitionEnds",
         "TokensGrowOverReleasesExpiriesEvictionsAndReconnects", "AHundredClaimsAreAnsweredInOrder",
         "AnEvictionTakesTheNameAndKeepsTheLease", "TheListIsSortedAndKnowsPrefixAndLimit", "Start",
         "Restart", "TwoContendersOfOneProcessTakeTurns", "EveryWaiterGetsItsTurn"});

}  // namespace
}  // namespace simba::testing
