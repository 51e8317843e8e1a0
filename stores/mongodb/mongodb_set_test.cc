#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "stores/mongodb/mongodb_fixture.h"
#include "testing/servers/turn.h"

// A replica set of three whose primaries step down and die. One set for all cases of this program.
namespace simba::mongodb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Shared {
  static Shared& place() {
    static Shared shared;
    return shared;
  }
  Shared() { set.start(); }
  servers::Turn turn{"mongod", 2};
  servers::MongodbSet set;
};

class MongodbSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      servers::need_mongodb();
      set = &Shared::place().set;
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
  }
  std::shared_ptr<Store> open(const std::string& name = "set") const {
    return open_mongodb(mongodb_options(set->url("appName=" + name)));
  }
  servers::MongodbSet* set = nullptr;
};

TEST_F(MongodbSetTest, ATermOutlivesAStepDownAndTokensGrowAcrossIt) {
  const auto store = open();
  const Observation held = insist([&] { return take(*store, "step", "a~1"); });
  set->step_down();
  EXPECT_EQ(insist([&] { return renew(*store, "step", "a~1", held.owner.token); }).owner.token,
            held.owner.token);
  EXPECT_EQ(insist([&] { return take(*store, "step", "b~1"); }).owner.id, "a~1");
  insist([&] {
    release(*store, "step", "a~1");
    return Observation{};
  });
  EXPECT_GT(insist([&] { return take(*store, "step", "b~1"); }).owner.token, held.owner.token);
  set->await_all();
}

TEST_F(MongodbSetTest, OwnersKeepTheirTermsWhilePrimariesStepDownAndDie) {
  const Client client(open("owner")), rival(open("rival"));
  ContendOptions often = lease(60s, 30s);
  often.renew_at = 0.02;  // so that renewals meet every change
  Contender owner(client, "kept", often);
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }, 60s));
  Contender waiter(rival, "kept", often);
  const Token token = owner.token();
  set->step_down();
  EXPECT_TRUE(owner.is_renewed()) << "by the new primary";
  set->await_all();
  const std::size_t killed = set->await_primary();
  (*set)[killed].kill();
  EXPECT_TRUE(owner.is_renewed()) << "by the next one";
  set->await_primary();
  (*set)[killed].launch();
  set->await_all();
  EXPECT_EQ(owner.released(), 0);
  EXPECT_EQ(waiter.acquired(), 0);
  EXPECT_TRUE(owner.is_owner());
  EXPECT_EQ(owner.token(), token);
  owner.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }, 60s));
  EXPECT_GT(waiter.token(), token);
}

TEST_F(MongodbSetTest, WithoutAMajorityNothingIsGrantedWhateverTheUriSays) {
  const auto store = open("set&w=1&readPreference=secondary&readConcernLevel=local");
  insist([&] { return take(*store, "warm", "a~1"); });
  for (int i = 0; i < 20; ++i) {
    const std::string id = "b~" + std::to_string(i);
    const Observation held = insist([&] { return take(*store, "read" + id, id); });
    EXPECT_EQ(insist([&] { return observe(*store, "read" + id); }).owner.token, held.owner.token)
        << "a secondary was asked, which is behind";
  }
  const auto watch = store->watch("warm", {}, [] {});
  EXPECT_TRUE(eventually([&] { return watch->is_live(); }));
  insist([&] { return take(*store, "lonely", "b~1"); });
  release(*store, "lonely", "b~1");
  const std::size_t primary = set->await_primary();
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != primary) (*set)[i].pause();
  }
  const std::string error =
      error_of([&] { take(*store, "lonely", "a~1", 0, BootClock::now() + 1s); });
  EXPECT_TRUE(error.starts_with("the deadline passed") ||
              error.starts_with("the store cannot be reached"))
      << error;
  // It stands in the primary, and may be taken back.
  error_of([&] { EXPECT_NE(observe(*store, "lonely").owner.id, "a~1"); });
  error_of(
      [&] { EXPECT_NE(take(*store, "lonely", "c~1", 0, BootClock::now() + 1s).owner.id, "a~1"); });
  for (std::size_t i = 0; i < 3; ++i) (*set)[i].resume();
  set->await_all();
  EXPECT_EQ(insist([&] { return take(*store, "lonely", "a~1"); }).owner.id, "a~1")
      << "the same id asks again";
}

TEST_F(MongodbSetTest, ASecondaryThatIsNamedAloneIsNotBelieved) {
  insist([&] { return take(*open(), "direct", "a~1"); });
  const std::size_t primary = set->await_primary();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto alone = open_mongodb(mongodb_options((*set)[i].direct_url()));
    const std::string error = error_of([&] { observe(*alone, "direct"); });
    const std::string listed = error_of([&] { alone->list({}, {}, 10, soon()); });
    if (i == primary) {
      EXPECT_EQ(error, "none");
      continue;
    }
    EXPECT_THAT(error, AllOf(StartsWith("the store cannot be reached"), HasSubstr("primary"),
                             HasSubstr("replicaSet=NAME")));
    EXPECT_THAT(listed, StartsWith("the store cannot be reached"));
  }
}

TEST_F(MongodbSetTest, APrimaryThatIsNamedAloneIsNotBelievedOnceItHasSteppedDown) {
  const auto alone = open_mongodb(mongodb_options((*set)[set->await_primary()].direct_url()));
  insist([&] { return take(*alone, "stepped", "a~1"); });
  set->step_down();
  EXPECT_THAT(error_of([&] { observe(*alone, "stepped"); }),
              StartsWith("the store cannot be reached"));
  set->await_all();
}

// The driver knows the others: that the one which was named is gone is no reason to give up.
TEST_F(MongodbSetTest, AnElectionIsWaitedForAlsoWhereTheUriNamesOneMember) {
  const std::size_t named = set->await_primary();
  MongodbOptions options =
      mongodb_options("mongodb://" + (*set)[named].host() + "/?replicaSet=rs0");
  options.connect_timeout = 60s;
  const auto store = open_mongodb(options);
  const Token token = insist([&] { return take(*store, "seed", "a~1"); }).owner.token;
  (*set)[named].kill();
  std::string errors;
  Observation seen;  // at first a new primary may not know what a majority has
  EXPECT_TRUE(eventually([&] {
    const std::string error = error_of([&] { seen = observe(*store, "seed"); });
    if (error != "none") errors += error + '\n';
    return seen.owner.token == token;
  }));
  EXPECT_THAT(errors, Not(HasSubstr("no primary is known")));
  (*set)[named].launch();
  set->await_all();
}

TEST_F(MongodbSetTest, AReleaseWakesAcrossAFailover) {
  const auto store = open("waiter"), other = open("owner");
  insist([&] { return take(*other, "woken", "a~1"); });
  std::atomic<int> wakes{0};
  const auto watch = store->watch("woken", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  set->step_down();
  set->await_primary();
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }, 60s));
  wakes = 0;
  insist([&] {
    release(*other, "woken", "a~1");
    return Observation{};
  });
  EXPECT_TRUE(eventually([&] { return wakes > 0; }, 60s));
  set->await_all();
}

}  // namespace
}  // namespace simba::mongodb
