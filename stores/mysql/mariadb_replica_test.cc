#include <thread>

#include "simba/locker.h"
#include "stores/mysql/mysql_fixture.h"
#include "testing/servers/mariadb_pair.h"

// A primary whose commits wait for a replica.
namespace simba::mysql {
namespace {

class MariadbReplicaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      servers::need_mariadb();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    pair = std::make_unique<servers::MariadbPair>();
    pair->start();
  }

  static bool grants(Store& store, std::span<const Claim> claims, milliseconds within) {
    try {
      for (const Answer& answer : store.contend(claims, BootClock::now() + within)) {
        const auto* seen = std::get_if<Observation>(&answer);
        if (seen != nullptr && seen->owner.is_owner(claims[0].wire_id)) return true;
      }
    } catch (const Error&) {
      return false;
    }
    return false;
  }

  // Connections that wait for a ring there.
  std::string waiting(std::size_t index) {
    return Admin((*pair)[index].url())(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'");
  }

  std::unique_ptr<servers::MariadbPair> pair;
};

// The limits of its statement, and of the call, end its wait, and grant nothing.
TEST_F(MariadbReplicaTest, WhatTheReplicaHasNotGotIsNoGrant) {
  const auto store = open_mysql(mysql_options(pair->url()));
  take(*store, "warm", "x~1");
  (*pair)[1].pause();
  const Claim alone[] = {{"alone", "a~1", 0, 0, 300s, 100s}};
  const Claim both[] = {{"one", "b~1", 0, 0, 300s, 100s}, {"two", "b~1", 0, 0, 300s, 100s}};
  EXPECT_FALSE(grants(*store, alone, 2s));
  EXPECT_FALSE(grants(*store, both, 2s));
  const Afflicted contender(open_mysql(mysql_options(pair->url())));
  EXPECT_TRUE(eventually([&] { return contender.was_logged("mend the replica"); }, kLongPatience))
      << "its own commit is what it waits for";
  EXPECT_FALSE(contender.is_owner());
  (*pair)[1].resume();
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
  EXPECT_TRUE(eventually([&] { return grants(*store, alone, 5s); }, kLongPatience));
  EXPECT_TRUE(eventually([&] { return grants(*store, both, 5s); }, kLongPatience));
}

// The former primary lives, and would keep a connection that waits for ever.
TEST_F(MariadbReplicaTest, TheDoorbellOfASwitchOverMovesToTheNewPrimary) {
  const auto store = open_mysql(mysql_options(pair->url()));
  const auto watch = store->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live() && waiting(0) == "1"; }));
  Admin((*pair)[0].url())("SET GLOBAL read_only = ON");
  EXPECT_TRUE(eventually([&] { return !watch->is_live(); })) << "nobody rings there";
  pair->promote(1);
  EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
  EXPECT_TRUE(eventually([&] { return waiting(1) == "1"; }));
  EXPECT_EQ(waiting(0), "0");
}

// Between a primary that is demoted and a replica that is promoted nobody writes.
TEST_F(MariadbReplicaTest, ALockWaitsForTheEndOfAFailover) {
  const Lines told;
  ClientOptions watched;
  watched.on_event = [write = told.sink()](const Event& event) {
    if (event.error != nullptr) write(LogLevel::kWarning, event.error->what());
  };
  const auto store = open_mysql(mysql_options(pair->url()));
  take(*store, "other", "x~1");
  const Client client(store, watched);
  Admin((*pair)[0].url())("SET GLOBAL read_only = ON");
  SimbaLocker locker(client, "report", steady_lease());
  std::atomic<bool> is_locked{false};
  std::string error;
  std::jthread waiter([&] {
    error = error_of([&] { locker.lock(); });
    is_locked = true;
  });
  EXPECT_TRUE(eventually([&] { return told.count("only reads") > 1 || is_locked; }));
  EXPECT_FALSE(is_locked) << error;
  (*pair)[0].kill();
  pair->promote(1);
  pair->follow(0);
  waiter.join();
  EXPECT_EQ(error, "none");
  if (error == "none") locker.unlock();
}

}  // namespace
}  // namespace simba::mysql
