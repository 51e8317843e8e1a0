#include <thread>

#include "stores/mysql/bell.h"
#include "stores/mysql/mysql_fixture.h"
#include "testing/servers/relay.h"

// The doorbell between processes, on a real server.
namespace simba::mysql {
namespace {

using ::testing::StartsWith;

class MysqlBellTest : public MysqlTest {
 protected:
  static constexpr milliseconds kAwake = 500ms;

  static constexpr const char* kSleeps = "STATE = 'User sleep'";
  static constexpr const char* kAtTheGate = "STATE = 'User lock'";

  // For less than a second.
  bool somebody_fell_asleep() { return somebody_began(kSleeps); }
  bool somebody_began(const std::string& to_wait) {
    asleep_ = BootClock::now();
    return count_connections(to_wait + " AND TIME = 0") == 1;
  }
  // Who was refused the mutex and waits for it.
  std::unique_ptr<Watch> wait_for(
      Store& store, const std::string& mutex, std::function<void()> wake = [] {}) {
    take(*open(), mutex, "holder~1");
    EXPECT_EQ(take(store, mutex, "waiter~1").owner.id, "holder~1");
    return store.watch(mutex, {}, std::move(wake));
  }
  // How long the quickest took, from when somebody had fallen asleep.
  milliseconds best_of_many(const std::function<void(int round)>& run) {
    milliseconds best = milliseconds::max();
    for (int round = 0; round < 20 && best >= kAwake && !HasFatalFailure(); ++round) {
      run(round);
      best = std::min(best, std::chrono::duration_cast<milliseconds>(BootClock::now() - asleep_));
    }
    return best;
  }

 private:
  LocalTime asleep_{};  // when it was last looked
};

TEST_F(MysqlBellTest, AThirdProcessThatWaitsIsNotPromisedARing) {
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 2; ++i) {
    stores.push_back(open_elsewhere());
    watches.push_back(wait_for(*stores.back(), "report"));
    ASSERT_TRUE(eventually([&] { return watches.back()->is_live(); }));
  }
  stores.push_back(open_elsewhere());
  watches.push_back(wait_for(*stores.back(), "report"));
  // The same connection tries for both, and not for the second one first.
  const auto later = stores.back()->watch("sales", {}, [] {});
  ASSERT_TRUE(eventually([&] { return later->is_live(); }));
  EXPECT_FALSE(watches[2]->is_live()) << "it would poll too seldom";
  watches.erase(watches.begin());
  stores.erase(stores.begin());
  EXPECT_TRUE(eventually([&] { return watches[1]->is_live(); })) << "there is a place now";
}

// Neither who owns nor who only watches is in the way of the one who can take over.
TEST_F(MysqlBellTest, AnOwnerGivesItsPlaceUpAndWhoOnlyWatchesLeavesOneToAWaiter) {
  const Client owners(open_elsewhere());
  auto owner = std::make_unique<Contender>(owners, "report", steady_lease());
  ASSERT_TRUE(eventually([&] { return owner->is_owner(); }));
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watchers;
  for (int i = 0; i < 2; ++i) {
    stores.push_back(open_elsewhere());
    watchers.push_back(stores.back()->watch("report", {}, [] {}));
  }
  EXPECT_TRUE(eventually([&] { return watchers[0]->is_live() || watchers[1]->is_live(); }))
      << "the owner has kept its place";
  const auto store = open_elsewhere();
  EXPECT_NE(take(*store, "report", "waiter~1").owner.id, "waiter~1");
  std::atomic<int> wakes{0};
  const auto waiter = store->watch("report", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return waiter->is_live(); })) << "there was no place for it";
  EXPECT_FALSE(watchers[0]->is_live() && watchers[1]->is_live());
  wakes = 0;
  owner.reset();
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
}

// As where two pass it to and fro, and hold it so shortly that each keeps its place.
TEST_F(MysqlBellTest, WhoOnlyWatchesLeavesItsPlaceToAWaiterThatHasNoneUntilThatHasGone) {
  const auto store = open_elsewhere(), first = open_elsewhere(), second = open_elsewhere();
  const auto watcher = store->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watcher->is_live(); }));
  const auto one = wait_for(*first, "report");
  ASSERT_TRUE(eventually([&] { return one->is_live(); }));
  auto other = wait_for(*second, "report");
  EXPECT_TRUE(eventually([&] { return other->is_live(); })) << "it would poll";
  EXPECT_TRUE(one->is_live());
  EXPECT_FALSE(watcher->is_live());
  other.reset();
  EXPECT_TRUE(eventually([&] { return watcher->is_live(); })) << "nobody asks for it any more";
}

TEST_F(MysqlBellTest, WhoHeldTheMutexForLongGetsAPlaceAgainWhenItWaits) {
  const auto store = open_elsewhere(), other = open_elsewhere();
  const Token token = take(*store, "report", "a~1").owner.token;
  const auto watch = store->watch("report", {}, [] {});
  take(*store, "report", "a~1");  // also the answer to one that watches already
  EXPECT_TRUE(eventually([&] {
    return admin()("SELECT IS_FREE_LOCK('" + bell_of(Endpoint(options()), "report") + "b')") == "1";
  })) << "it has kept its place";
  EXPECT_FALSE(watch->is_live());
  release(*store, "report", "a~1", token);
  take(*other, "report", "b~1");
  EXPECT_EQ(observe(*store, "report").owner.id, "b~1");
  EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
}

// A row that is locked, as by a release that is not committed, holds the registration up.
TEST_F(MysqlBellTest, ARingWhileAWaiterRegistersCostsNeitherItsHintsNorAPlace) {
  prepare_user();
  const auto store = open_elsewhere(user);
  const std::string registering = "FROM information_schema.PROCESSLIST WHERE USER = '" + user +
                                  "' AND INFO LIKE '%LOCK IN SHARE MODE'";
  std::string free = "SELECT 0";
  for (int round = 0; round < 3; ++round) {
    const std::string mutex = "m" + std::to_string(round);
    take(*open(), mutex, "holder~1");
    auto stranger = lock_row(mutex);
    auto watch = store->watch(mutex, {}, [] {});
    std::string id;
    ASSERT_TRUE(eventually([&] { return !(id = admin()("SELECT ID " + registering)).empty(); }));
    admin()("KILL QUERY " + id);
    stranger.reset();
    ASSERT_TRUE(eventually([&] { return watch->is_live(); }))
        << "it polls for the rest of its life";
    for (const std::string place : {"a", "b"}) {
      free += " + IS_FREE_LOCK('" + bell_of(Endpoint(options()), mutex) + place + "')";
    }
  }
  EXPECT_TRUE(eventually([&] { return admin()(free) == "6"; })) << "a place is lost";
}

TEST_F(MysqlBellTest, WhereNoConnectionIsLeftToWakeItTheSleepEndsByItself) {
  prepare_user(with_connections(2));
  const auto store = open_elsewhere(user);
  const auto first = store->watch("first", {}, [] {});
  ASSERT_TRUE(eventually([&] { return count_connections(kSleeps) == 1; }));
  const auto last = connect_as(user);
  const auto second = store->watch("second", {}, [] {});
  EXPECT_TRUE(eventually([&] { return second->is_live(); }));
  EXPECT_TRUE(first->is_live());
  EXPECT_EQ(log.count("waiters poll until this is over"), 0U);
}

// A sleep lasts two seconds, and is seen to have just begun: whoever is up within half a second was
// woken. The best of many tells, because the machine may be busy.
TEST_F(MysqlBellTest, WhoSleepsAtTheBellIsWokenByAReleaseElsewhere) {
  make_user();
  make_table();
  grant();
  const auto store = open_elsewhere(user), other = open_elsewhere(user);
  std::atomic<int> wakes{0};
  const auto watch = store->watch("report", {}, [&] { ++wakes; });
  const auto best = best_of_many([&](int round) {
    const std::string id = "a~" + std::to_string(round);
    take(*other, "report", id);
    ASSERT_TRUE(eventually([&] { return somebody_fell_asleep(); }));
    wakes = 0;
    release(*other, "report", id);
    ASSERT_TRUE(eventually([&] { return wakes > 0; }));
  });
  EXPECT_LT(best, kAwake) << "it slept on";
}

// As when the ring comes between two sleeps: then only the look that each begins with tells.
TEST_F(MysqlBellTest, AWriteThatIsCommittedLaterIsSeenThen) {
  prepare_user();
  const auto store = open_elsewhere(user);
  take(*open(), "report", "a~1");
  std::atomic<int> wakes{0};
  const auto watch = store->watch("report", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return somebody_fell_asleep(); }));
  Admin stranger(options());
  stranger("BEGIN");
  stranger("UPDATE " + table + " SET version = version + 1");
  ASSERT_TRUE(
      eventually([&] { return count_connections(std::string(kSleeps) + " AND TIME > 0") == 1; }));
  ASSERT_TRUE(eventually([&] { return somebody_fell_asleep(); })) << "it looked again";
  wakes = 0;
  stranger("COMMIT");
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "it was told of it too early";
}

// All are looked at together: what one that is let go takes away must not hide what was written to
// the others. It is let go after five seconds, when the sleep of that moment ends.
TEST_F(MysqlBellTest, AWriteIsSeenAlsoWhereAnotherMutexIsLetGoMeanwhile) {
  prepare_user();
  const auto store = open_elsewhere(user);
  take(*open(), "first", "a~1");
  take(*open(), "second", "a~1");
  admin()("UPDATE " + table + " SET version = IF(mutex = 'first', 4, 3)");
  std::atomic<int> wakes{0};
  const auto watch = store->watch("first", {}, [&] { ++wakes; });
  auto other = store->watch("second", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live() && other->is_live(); }));
  ASSERT_TRUE(eventually([&] { return somebody_fell_asleep(); }));
  const LocalTime then = BootClock::now() + 5050ms;
  other.reset();
  ASSERT_TRUE(eventually([&] { return BootClock::now() > then; }));
  wakes = 0;
  admin()("UPDATE " + table + " SET version = 7 WHERE mutex = 'first'");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
}

TEST_F(MysqlBellTest, WhoBeginsToWaitWhileOthersSleepIsHeardToo) {
  make_user();
  make_table();
  grant();
  const auto store = open_elsewhere(user), other = open_elsewhere(user);
  std::vector<std::unique_ptr<Watch>> watches;
  watches.push_back(store->watch("first", {}, [] {}));
  const auto best = best_of_many([&](int round) {
    ASSERT_TRUE(eventually([&] { return somebody_fell_asleep(); }));
    watches.push_back(store->watch("second" + std::to_string(round), {}, [] {}));
    ASSERT_TRUE(eventually([&] { return watches.back()->is_live(); }));
  });
  EXPECT_LT(best, kAwake) << "the sleep was not interrupted";
  std::atomic<int> wakes{0};
  const auto last = store->watch("last", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return last->is_live(); }));
  take(*other, "last", "a~1");
  wakes = 0;
  release(*other, "last", "a~1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
}

TEST_F(MysqlBellTest, AHundredWhoWaitInOneProcessShareTheConnectionThatWaits) {
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
  EXPECT_TRUE(eventually([&] { return count_connections("TRUE") <= 3; }));
}

// Where many sleep, and are woken all the time, MariaDB holds up who wakes them, and the others.
TEST_F(MysqlBellTest, OfManyWhoWaitOneSleepsAndTheOthersQueueBehindIt) {
  prepare_user();
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 5; ++i) {
    stores.push_back(open_elsewhere(user));
    watches.push_back(stores.back()->watch("m" + std::to_string(i), {}, [] {}));
  }
  const auto is_queue = [&] {
    return count_connections(kSleeps) == 1 && count_connections(kAtTheGate) == 4;
  };
  EXPECT_TRUE(eventually(is_queue));
  // Another takes the place of the one that goes.
  const std::string who = admin()("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '" +
                                  user + "' AND " + kSleeps);
  if (!who.empty()) admin()("KILL " + who);
  EXPECT_TRUE(eventually([&] { return log.count("waiters poll until this is over") == 1; }));
  EXPECT_TRUE(eventually(is_queue));
}

TEST_F(MysqlBellTest, WhoWaitsBehindASleeperIsWokenByAReleaseElsewhere) {
  prepare_user();
  const auto sleeper = open_elsewhere(user), store = open_elsewhere(user);
  const auto other = open_elsewhere(user);
  const auto first = sleeper->watch("another", {}, [] {});
  ASSERT_TRUE(eventually([&] { return count_connections(kSleeps) == 1; }));
  std::atomic<int> wakes{0};
  const auto watch = store->watch("report", {}, [&] { ++wakes; });
  const auto best = best_of_many([&](int round) {
    const std::string id = "a~" + std::to_string(round);
    take(*other, "report", id);
    ASSERT_TRUE(eventually([&] { return somebody_began(kAtTheGate); }));
    wakes = 0;
    release(*other, "report", id);
    ASSERT_TRUE(eventually([&] { return wakes > 0; }));
  });
  EXPECT_LT(best, kAwake) << "it waited on";
}

// The server sees a circle: who alters the table waits for those who wait for the sleeper, who
// waits for the table.
TEST_F(MysqlBellTest, ATableThatIsAlteredMakesNobodyDeaf) {
  prepare_user();
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(open_elsewhere(user));
    watches.push_back(stores.back()->watch("m" + std::to_string(i), {}, [] {}));
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(eventually([&] { return count_connections(kAtTheGate) == 2; }));
    admin()("ALTER TABLE " + table + " COMMENT = '" + std::to_string(round) + "'");
  }
  EXPECT_EQ(log.count("waiters poll until this is over"), 0U);
  for (const auto& each : watches) EXPECT_TRUE(each->is_live());
}

// A connection that sleeps, again and again, and is woken by rings.
class MysqlRingTest : public MysqlBellTest {
 protected:
  void SetUp() override {
    MysqlBellTest::SetUp();
    if (IsSkipped()) return;
    sleeper_ = std::jthread([this](const std::stop_token& stop) {
      Admin own(url());
      id = std::stoull(own("SELECT CONNECTION_ID()"));
      for (; !stop.stop_requested(); ++woken) error_of([&] { own("SELECT SLEEP(60)"); });
    });
    ASSERT_TRUE(eventually([&] { return sleeps(); }));
  }
  void TearDown() override {
    sleeper_.request_stop();
    if (sleeps()) admin()("KILL QUERY " + std::to_string(id));
    MysqlBellTest::TearDown();
  }
  bool sleeps() const {
    return admin()("SELECT COUNT(*) FROM information_schema.processlist WHERE id = " +
                   std::to_string(id) + " AND STATE = 'User sleep'") == "1";
  }
  std::string hand() const { return "'simba:ring:" + std::to_string(id) + "'"; }
  bool is_hand_free() const { return admin()("SELECT IS_FREE_LOCK(" + hand() + ")") == "1"; }

  std::atomic<std::uint64_t> id{0};
  std::atomic<int> woken{0};
  const kit::StopSignal never;

 private:
  std::jthread sleeper_;
};

// Found by the long load: where several end one sleep at once, MariaDB stands still for seconds.
TEST_F(MysqlRingTest, WhoFindsAnotherRingingLeavesItAtThat) {
  Endpoint endpoint(options());
  Connection connection(endpoint, never);
  ASSERT_EQ(admin()("SELECT GET_LOCK(" + hand() + ", 0)"), "1");
  ring(connection, id, BootClock::now() + 60s);
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(woken, 0);
  ASSERT_EQ(admin()("SELECT RELEASE_LOCK(" + hand() + ")"), "1");
  ring(connection, id, BootClock::now() + 60s);
  EXPECT_TRUE(eventually([&] { return woken == 1; }));
  EXPECT_TRUE(is_hand_free());
}

// As where it is stopped, or far away: its next word comes late, or never.
TEST_F(MysqlRingTest, WhoRingsAndHearsNoAnswerIsInNobodysWay) {
  servers::Relay relay(options().hosts.at(0).second);
  MysqlOptions through = options();
  through.hosts = {{"127.0.0.1", relay.port()}};
  Endpoint far(through), endpoint(options());
  Connection slow(far, never), connection(endpoint, never);
  relay.mute();
  EXPECT_THAT(error_of([&] { ring(slow, id, BootClock::now() + 300ms); }),
              StartsWith("the deadline passed"));
  ASSERT_TRUE(eventually([&] { return woken == 1 && sleeps(); }));
  ring(connection, id, BootClock::now() + 60s);
  EXPECT_TRUE(eventually([&] { return woken == 2; })) << "the ring was lost";
}

TEST_F(MysqlRingTest, ARingThatFailsLeavesNothingLocked) {
  prepare_user();
  Endpoint endpoint(options(user));
  Connection foreign(endpoint, never);
  ring(foreign, id, BootClock::now() + 60s);
  EXPECT_EQ(log.count("waits as another user of the server"), 1U);
  EXPECT_TRUE(foreign.is_usable());
  EXPECT_TRUE(is_hand_free());
  EXPECT_EQ(woken, 0);
}

TEST_F(MysqlRingTest, ARingThatReachesNobodyLeavesTheConnectionAsItWas) {
  Endpoint endpoint(options());
  Connection connection(endpoint, never);
  const LocalTime deadline = BootClock::now() + 60s;
  ASSERT_EQ(admin()("SELECT GET_LOCK(" + hand() + ", 0)"), "1");
  ring(connection, id, deadline);
  EXPECT_TRUE(connection.is_usable()) << "another one rings";
  ASSERT_EQ(admin()("SELECT RELEASE_LOCK(" + hand() + ")"), "1");
  std::uint64_t gone = 0;
  {
    const Connection short_lived(endpoint, never);
    gone = short_lived.id();
  }
  ASSERT_TRUE(eventually([&] {
    return admin()("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = " +
                   std::to_string(gone)) == "0";
  }));
  ring(connection, gone, deadline);
  EXPECT_TRUE(connection.is_usable()) << "the one who waited has gone";
}

}  // namespace
}  // namespace simba::mysql
