#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "simba/zookeeper.h"
#include "testing/contract.h"
#include "testing/patient_store.h"
#include "testing/servers/turn.h"
#include "testing/servers/zookeeper.h"

// Some cases of the contract suite on three servers. In each the leader is killed once somebody has
// got a mutex, and long ones see more of them die.
namespace simba::testing {
namespace {

using namespace std::chrono_literals;

// One ensemble for all cases of this process.
struct Shared {
  static Shared& place() {
    static Shared shared;
    return shared;
  }
  static servers::ZooKeeperSettings settings() {
    servers::ZooKeeperSettings made;
    made.tick = 200ms;
    made.config["initLimit"] = "50";
    made.config["maxSessionTimeout"] = "120000";
    return made;
  }
  Shared() { ensemble.start(); }

  servers::Turn turn{"java", 3};
  servers::ZooKeeperEnsemble ensemble{settings()};
};

// Says when somebody has got a mutex for the first time, before the one who asked hears of it.
class TellingStore : public PatientStore {
 public:
  TellingStore(std::shared_ptr<Store> store, std::function<void()> first)
      : PatientStore(std::move(store)), first_(std::move(first)) {}

  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    Answers answers = PatientStore::contend(claims, deadline);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto* seen = std::get_if<Observation>(&answers[i]);
      if (seen && seen->owner.is_owner(claims[i].wire_id)) first_();
    }
    return answers;
  }

 private:
  const std::function<void()> first_;
};

// Of one session all stores see the same. Sessions apart hang on different servers, and what one of
// them reads may be a moment old.
enum class Sessions : std::uint8_t { kOne, kApart };

class EnsembleContract : public StoreContract {
 public:
  explicit EnsembleContract(Sessions sessions) try : sessions_(sessions), ensemble_(reachable()) {
    ensemble_->await_quorum(3);
    killing_ = std::thread([this] { go_on(); });
  } catch (const servers::Unavailable& reason) {
    skip(reason.what());
  }
  ~EnsembleContract() override {
    if (!killing_.joinable()) return;
    is_over_ = true;
    killing_.join();
    EXPECT_GE(kills_, 1) << "no leader was killed while somebody had a mutex";
  }

  std::shared_ptr<Store> connect() override {
    if (!ensemble_) return nullptr;
    static std::atomic<int> made{0};
    const int timeout = 120'000 + (sessions_ == Sessions::kApart ? ++made : 0);
    return std::make_shared<TellingStore>(
        open_zookeeper(zookeeper_options("zookeeper://" + ensemble_->addresses() +
                                         "?tick=200&session-timeout=" + std::to_string(timeout))),
        [this] { kill_the_first(); });
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
  static servers::ZooKeeperEnsemble* reachable() {
    servers::need_zookeeper();
    return &Shared::place().ensemble;
  }
  void kill_the_first() {
    std::call_once(first_, [this] { kill_the_leader(); });
  }
  void kill_the_leader() {
    killed_ = ensemble_->leader();
    (*ensemble_)[killed_].kill();
    ++kills_;
  }
  void bring_it_back() {
    ensemble_->await_quorum(2);
    (*ensemble_)[killed_].launch();
    ensemble_->await_quorum(3);
  }
  void go_on() {
    try {
      kill_now_and_then();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "the ensemble: " << error.what();
    }
  }
  void kill_now_and_then() {
    while (!is_over_ && kills_ == 0) std::this_thread::sleep_for(5ms);
    if (kills_ == 0) return;
    bring_it_back();
    LocalTime next = BootClock::now() + kBetweenDeaths;
    while (!is_over_) {
      std::this_thread::sleep_for(50ms);
      if (BootClock::now() < next) continue;
      kill_the_leader();
      bring_it_back();
      next = BootClock::now() + kBetweenDeaths;
    }
  }

  static constexpr auto kBetweenDeaths = 8s;

  const Sessions sessions_;
  servers::ZooKeeperEnsemble* ensemble_ = nullptr;
  std::once_flag first_;
  std::size_t killed_ = 0;  // written before kills_ grows
  std::atomic<int> kills_{0};
  std::atomic<bool> is_over_{false};
  std::thread killing_;
};

ContractFactory make(Sessions sessions) {
  return [sessions] { return std::make_unique<EnsembleContract>(sessions); };
}

[[maybe_unused]] const bool kAddedOne =
    add_contract("ZookeeperEnsemble", make(Sessions::kOne),
                 {"AHundredClaimsAreAnsweredInOrder", "ALockIsRenewedWhileItIsHeld", "Guard",
                  "Restart", "Start"});

[[maybe_unused]] const bool kAddedApart =
    add_contract("ZookeeperEnsembleSessions", make(Sessions::kApart),
                 {"AReleaseElsewhereWakesTheWaiter", "AReleaseHandsOverByAHintAlone",
                  "AWaiterGetsTheMutexWhenItIsUnlocked", "MultiContend",
                  "OnlyTheLeaderRunsAndTheNextOneGoesOn", "Schedule"});

}  // namespace
}  // namespace simba::testing
