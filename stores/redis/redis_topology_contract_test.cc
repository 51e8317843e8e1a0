#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>

#include "simba/redis.h"
#include "stores/redis/names.h"
#include "testing/contract.h"
#include "testing/servers/redis.h"

// Some cases of the contract suite on TLS, on a cluster whose slots move between them, and with
// sentinels that make another server the master in the middle. Stores live through all cases of a
// suite, so that they see it happen.
namespace simba::testing {
namespace {

using servers::RedisSettings;

const std::set<std::string>& cases() {
  static const std::set<std::string> some{
      "AFreeMutexIsTaken",
      "AHeldMutexIsNotTakenByAnother",
      "ARepeatedTakeOfTheSameWireIdKeepsItsToken",
      "ALateRenewalOfAnEarlierTermChangesNothing",
      "NobodyEntersBeforeTheTransitionEnds",
      "TokensGrowOverReleasesExpiriesEvictionsAndReconnects",
      "AHundredClaimsAreAnsweredInOrder",
      "AnEvictionTakesTheNameAndKeepsTheLease",
      "TheListIsSortedAndKnowsPrefixAndLimit",
      "PagesNameWhatIsThereExactlyOnceWhateverComesAndGoes",
      "AReleaseElsewhereWakesTheWaiter",
      "Start",
      "Restart",
      "TwoContendersOfOneProcessTakeTurns",
      "EveryWaiterGetsItsTurn",
  };
  return some;
}

// What a suite runs on: one for all its cases.
class Place {
 public:
  virtual ~Place() = default;
  virtual std::string url() const = 0;
  // Before the case of this number.
  virtual void disturb(int number) = 0;
  // Whether that is to be seen, once all cases have run.
  virtual bool is_disturbed() = 0;

  // The stores of a case are those of the cases before it, and more where it wants more.
  std::shared_ptr<Store> store(std::size_t number) {
    while (stores_.size() <= number) {
      const std::string name = "client-name=place-" + std::to_string(stores_.size());
      stores_.push_back(open_redis(redis_options(url() + "&" + name)));
    }
    return stores_[number];
  }
  int next() { return cases_++; }
  bool is_through() const { return cases_ == static_cast<int>(cases().size()); }

 private:
  std::vector<std::shared_ptr<Store>> stores_;
  int cases_ = 0;
};

class TlsPlace : public Place {
 public:
  TlsPlace() { server_.start(); }
  std::string url() const override { return server_.url("restart-guard=off"); }
  void disturb(int) override {}
  bool is_disturbed() override { return true; }  // there is nothing to see

 private:
  servers::RedisServer server_{
      RedisSettings{.transport = RedisSettings::Transport::kTls, .config = {}}};
};

class ClusterPlace : public Place {
 public:
  ClusterPlace() { cluster_.start(); }
  std::string url() const override { return cluster_.url("restart-guard=off"); }
  // A third of all slots is elsewhere, and nobody is told.
  void disturb(int number) override {
    if (number == static_cast<int>(cases().size()) / 2) cluster_.move_all(0, 1);
  }
  bool is_disturbed() override { return cluster_.owner(0) == 1; }

 private:
  servers::RedisCluster cluster_;
};

class SentinelPlace : public Place {
 public:
  SentinelPlace() { sentinels_.start(); }
  std::string url() const override { return sentinels_.url("restart-guard=off"); }
  void disturb(int number) override {
    if (number == static_cast<int>(cases().size()) / 2) sentinels_.fail_over();
  }
  bool is_disturbed() override { return sentinels_.master() != 0; }

 private:
  servers::RedisSentinels sentinels_;
};

// The suites that ran, for a look at the end.
std::map<std::string, Place*>& places() {
  static std::map<std::string, Place*> all;
  return all;
}

class LookAtTheEnd : public ::testing::Environment {
 public:
  void TearDown() override {
    for (const auto& [name, place] : places()) {
      EXPECT_TRUE(!place->is_through() || place->is_disturbed()) << name << " ran in peace";
    }
  }
};

template <class Where>
class PlaceContract : public StoreContract {
 public:
  PlaceContract() try {
    servers::need_redis();
    static Where place;
    place_ = &place;
    places()[typeid(Where).name()] = place_;
    place_->disturb(place_->next());
  } catch (const servers::Unavailable& reason) {
    skip(reason.what());
  }
  std::shared_ptr<Store> connect() override {
    return place_ == nullptr ? nullptr : place_->store(used_++);
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
  Where* place_ = nullptr;
  std::size_t used_ = 0;
};

template <class Where>
bool add(const char* name) {
  return add_contract(
      name, [] { return std::make_unique<PlaceContract<Where>>(); }, cases());
}

[[maybe_unused]] const bool kAdded = add<TlsPlace>("RedisTls") &&
                                     add<ClusterPlace>("RedisCluster") &&
                                     add<SentinelPlace>("RedisSentinel");
[[maybe_unused]] const auto* const kLook = ::testing::AddGlobalTestEnvironment(new LookAtTheEnd);

}  // namespace
}  // namespace simba::testing
