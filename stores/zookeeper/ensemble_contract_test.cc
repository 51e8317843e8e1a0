#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "simba/zookeeper.h"
#include "testing/contract.h"
#include "testing/patient_store.h"
#include "testing/servers/turn.h"
#include "testing/servers/zookeeper.h"

// Some cases of the contract suite on three servers. Each begins with a leader killed, and long
// ones see more of them die.
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

class EnsembleContract : public StoreContract {
 public:
  EnsembleContract() try : ensemble_(reachable()) {
    kill_the_leader();
    killing_ = std::thread([this] { go_on(); });
  } catch (const servers::Unavailable& reason) {
    skip(reason.what());
  }
  ~EnsembleContract() override {
    is_over_ = true;
    if (killing_.joinable()) killing_.join();
  }

  std::shared_ptr<Store> connect() override {
    if (!ensemble_) return nullptr;
    return std::make_shared<PatientStore>(open_zookeeper(zookeeper_options(
        "zookeeper://" + ensemble_->addresses() + "?tick=200&session-timeout=120000")));
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
  static servers::ZooKeeperEnsemble* reachable() {
    servers::need_zookeeper();
    return &Shared::place().ensemble;
  }
  void kill_the_leader() {
    killed_ = ensemble_->leader();
    (*ensemble_)[killed_].kill();
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

  servers::ZooKeeperEnsemble* ensemble_ = nullptr;
  std::size_t killed_ = 0;
  std::atomic<bool> is_over_{false};
  std::thread killing_;
};

[[maybe_unused]] const bool added = add_contract(
    "ZookeeperEnsemble", [] { return std::make_unique<EnsembleContract>(); },
    {"Start", "Restart", "MultiContend", "Schedule", "OnlyTheLeaderRunsAndTheNextOneGoesOn"});

}  // namespace
}  // namespace simba::testing
