#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "simba/zookeeper.h"
#include "testing/contract.h"
#include "testing/servers/turn.h"
#include "testing/servers/zookeeper.h"

// Some cases of the contract suite on three servers. Each begins with a leader killed, and long
// ones see more of them die.
namespace simba::testing {
namespace {

using namespace std::chrono_literals;

// What a case asks directly is asked again until its deadline while there is no leader, as the
// engine does with its own calls.
class PatientStore : public Store {
 public:
  explicit PatientStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  const StoreTraits& traits() const override { return store_->traits(); }
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    return insist(deadline, [&] { return store_->contend(claims, deadline); });
  }
  Answers release(std::span<const Claim> claims, LocalTime deadline) override {
    return insist(deadline, [&] { return store_->release(claims, deadline); });
  }
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override {
    return insist(deadline, [&] { return store_->observe(mutexes, deadline); });
  }
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override {
    return insist(deadline, [&] { return store_->evict(mutex, wire_id, token, how, deadline); });
  }
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override {
    return store_->watch(mutex, wire_id, std::move(wake));
  }
  std::vector<Listed> list(std::string_view prefix, std::size_t limit,
                           LocalTime deadline) override {
    return insist(deadline, [&] { return store_->list(prefix, limit, deadline); });
  }

 private:
  template <typename Call>
  static auto insist(LocalTime deadline, const Call& call) -> decltype(call()) {
    while (true) {
      try {
        return call();
      } catch (const Error& error) {
        if (!error.is_transient() || BootClock::now() >= deadline) throw;
      }
      std::this_thread::sleep_for(20ms);
    }
  }

  const std::shared_ptr<Store> store_;
};

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
