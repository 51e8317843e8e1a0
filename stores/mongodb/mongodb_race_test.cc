#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "stores/mongodb/mongodb_fixture.h"

// Many who create the same documents at once.
namespace simba::mongodb {
namespace {

// Eight who claim the same at the same time, round after round. Each counts what it got of a round.
class Race {
 public:
  using Claim = std::function<int(Store& store, int round, const std::string& id)>;

  Race(std::vector<std::shared_ptr<Store>> stores, int rounds, int at_stake, const Claim& claim)
      : start_(static_cast<std::ptrdiff_t>(stores.size())),
        end_(static_cast<std::ptrdiff_t>(stores.size()), Check{this, at_stake}) {
    for (const auto& store : stores) observe(*store, "warm");
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < stores.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < rounds; ++round) {
          start_.arrive_and_wait();
          try {
            won_ += claim(*stores[i], round, "racer~" + std::to_string(i));
          } catch (const Error&) {
            ++errors_;
          }
          end_.arrive_and_wait();
        }
      });
    }
  }
  int bad_rounds() const { return bad_rounds_; }
  int errors() const { return errors_; }

 private:
  struct Check {
    void operator()() noexcept {
      if (race->won_.exchange(0) != at_stake) ++race->bad_rounds_;
    }
    Race* race;
    int at_stake;
  };
  std::atomic<int> won_{0}, bad_rounds_{0}, errors_{0};
  std::barrier<> start_;
  std::barrier<Check> end_;
};

class MongodbRaceTest : public MongodbTest {
 protected:
  static std::string order(int i) { return "order-" + std::to_string(10'000 + i); }
  std::vector<std::shared_ptr<Store>> racers() const {
    std::vector<std::shared_ptr<Store>> stores;
    for (int i = 0; i < 8; ++i) stores.push_back(open("appName=racer-" + std::to_string(i)));
    return stores;
  }
};

// The loser of an upsert can be told that it won; here nobody upserts.
TEST_F(MongodbRaceTest, Mgo313OfEightWhoCreateADocumentAtOnceOneWinsInEachOfAThousandRounds) {
  const Race race(racers(), 1'000, 1, [](Store& store, int round, const std::string& id) {
    return take(store, order(round), id, 0, BootClock::now() + 60s).owner.id == id ? 1 : 0;
  });
  EXPECT_EQ(race.bad_rounds(), 0);
  EXPECT_EQ(race.errors(), 0);
}

TEST_F(MongodbRaceTest, OfEightWhoCreateABatchOfDocumentsAtOnceEachHasOneWinner) {
  constexpr int kBatch = 10;
  const Race race(racers(), 100, kBatch, [](Store& store, int round, const std::string& id) {
    std::vector<std::string> names, ids;
    for (int i = 0; i < kBatch; ++i) {
      names.push_back(order(round * kBatch + i));
      ids.push_back(id + '~' + std::to_string(i));
    }
    std::vector<Claim> claims;
    for (std::size_t i = 0; i < kBatch; ++i) claims.push_back({names[i], ids[i], 0, 0, 20s, 10s});
    const Answers answers = store.contend(claims, BootClock::now() + 60s);
    int won = 0;
    for (std::size_t i = 0; i < kBatch; ++i) won += observed(answers[i]).owner.id == ids[i] ? 1 : 0;
    return won;
  });
  EXPECT_EQ(race.bad_rounds(), 0);
  EXPECT_EQ(race.errors(), 0);
}

}  // namespace
}  // namespace simba::mongodb
