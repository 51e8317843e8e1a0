#include "stores/mysql/mysql_fixture.h"

// The doorbell between processes, on a real server.
namespace simba::mysql {
namespace {

class MysqlBellTest : public MysqlTest {};

TEST_F(MysqlBellTest, AThirdProcessThatWaitsIsNotPromisedARing) {
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 2; ++i) {
    stores.push_back(open_elsewhere());
    watches.push_back(stores.back()->watch("report", {}, [] {}));
    ASSERT_TRUE(eventually([&] { return watches.back()->is_live(); }));
  }
  stores.push_back(open_elsewhere());
  watches.push_back(stores.back()->watch("report", {}, [] {}));
  // The same connection tries for both, and not for the second one first.
  const auto later = stores.back()->watch("sales", {}, [] {});
  ASSERT_TRUE(eventually([&] { return later->is_live(); }));
  EXPECT_FALSE(watches[2]->is_live()) << "it would poll too seldom";
  watches.erase(watches.begin());
  stores.erase(stores.begin());
  EXPECT_TRUE(eventually([&] { return watches[1]->is_live(); })) << "there is a place now";
}

TEST_F(MysqlBellTest, WhoSleepsAtTheBellIsWokenByAReleaseElsewhere) {
  make_user();
  make_table();
  grant();
  const auto store = open_elsewhere(user), other = open_elsewhere(user);
  take(*other, "report", "a~1");
  std::atomic<int> wakes{0};
  const auto watch = store->watch("report", {}, [&] { ++wakes; });
  // Nothing has changed for a while.
  ASSERT_TRUE(
      eventually([&] { return count_connections("STATE = 'User sleep' AND TIME_MS > 250") == 1; }));
  wakes = 0;
  const LocalTime began = BootClock::now();
  release(*other, "report", "a~1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }, 5s));
  EXPECT_LT(BootClock::now() - began, 5s) << "it slept on";
}

TEST_F(MysqlBellTest, WhoBeginsToWaitWhileOthersSleepIsHeardToo) {
  make_user();
  make_table();
  grant();
  const auto store = open_elsewhere(user), other = open_elsewhere(user);
  const auto first = store->watch("first", {}, [] {});
  ASSERT_TRUE(
      eventually([&] { return count_connections("STATE = 'User sleep' AND TIME_MS > 100") == 1; }));
  std::atomic<int> wakes{0};
  const auto second = store->watch("second", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return second->is_live(); }, 5s)) << "the sleep was not interrupted";
  take(*other, "second", "a~1");
  wakes = 0;
  release(*other, "second", "a~1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }, 5s));
}

TEST_F(MysqlBellTest, AHundredWhoWaitInOneProcessNeedOneConnectionAndHardlyAQuery) {
  make_user();
  make_table();
  grant();
  take(*open(), "held", "owner~1");
  const Client client(open(user, "connections=2"));
  std::vector<std::unique_ptr<Contender>> waiters;
  for (int i = 0; i < 100; ++i) {
    waiters.push_back(std::make_unique<Contender>(client, "held", lease(10s, 6s)));
  }
  ASSERT_TRUE(eventually([&] { return count_connections("STATE = 'User sleep'") == 1; }));
  EXPECT_LE(count_connections("TRUE"), 3);
}

}  // namespace
}  // namespace simba::mysql
