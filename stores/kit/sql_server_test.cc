// Servers of their own, which are killed, stopped and paused. Compiled once for each store in SQL,
// as sql_store_test.cc is.
#include SIMBA_SQL_FIXTURE

namespace simba::kit {
namespace {

using namespace fixture;  // NOLINT(google-build-using-namespace): for tests alone
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SqlServerTest : public SqlServerFixture {};

TEST_F(SqlServerTest, KilledAndStartedAgainDuringContentionItIsGoneOnWith) {
  start();
  const Rivals rivals(open(), open());
  const auto store = open();
  ASSERT_TRUE(eventually([&] { return rivals.somebody_owns(); }));
  for (int round = 0; round < 3; ++round) {
    const std::string kept = "kept-" + std::to_string(round);
    const Observation held = observed(contend(*store, {kept, "owner~1", 0, 0, 10min, 10min}));
    ASSERT_EQ(held.owner.id, "owner~1");
    crash();
    EXPECT_THAT(error_of([&] { take(*store, kept, "rival~1"); }),
                AllOf(StartsWith("the store cannot be reached"), HasSubstr("127.0.0.1:")));
    if (round == 1) {
      // Longer than a lease: nobody believes in it any more.
      EXPECT_TRUE(eventually([&] { return !rivals.somebody_owns(); }, 3100ms));
    }
    server->start();
    ASSERT_TRUE(eventually([&] { return rivals.somebody_owns(); })) << "round " << round;
    Observation seen;
    ASSERT_TRUE(eventually(
        [&] { return error_of([&] { seen = take(*store, kept, "rival~1"); }) == "none"; }));
    EXPECT_EQ(seen.owner.id, "owner~1") << "what was answered was forgotten";
    EXPECT_EQ(seen.owner.token, held.owner.token);
  }
  EXPECT_EQ(rivals.both(), 0);
}

TEST_F(SqlServerTest, StoppedInGoodOrderAndStartedAgainItKeepsTheTerm) {
  start();
  const Client client(open());
  const Contender owner(client, "report", steady_lease());
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  const Token token = owner.token();
  server->restart();
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_TRUE(owner.is_in_ttl());
  EXPECT_EQ(owner.token(), token);
  EXPECT_EQ(owner.released(), 0);
}

TEST_F(SqlServerTest, PausedItIsNotWaitedForBeyondTheDeadline) {
  start();
  const auto store = open();
  take(*store, "report", "a~1");
  const Client client(open());
  const Contender owner(client, "held", short_lease());
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  pause();
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  LocalTime began;
  std::string error;
  // The signal needs a moment to reach all of its threads.
  ASSERT_TRUE(eventually([&] {
    began = BootClock::now();
    error = error_of([&] { store->contend({&claim, 1}, began + 300ms); });
    return error != "none";
  }));
  EXPECT_THAT(error, AllOf(StartsWith("the deadline passed"), HasSubstr("no answer before")));
  EXPECT_LT(BootClock::now() - began, 10s);
  EXPECT_TRUE(eventually([&] { return !owner.is_owner(); }, 3200ms))
      << "it is believed past its lease; ms left: " << owner.time_left() / 1ms;
  resume();
  EXPECT_TRUE(eventually([&] { return owner.is_owner(); }));
  EXPECT_TRUE(eventually([&] { return can_take(*store, "another"); }));
}

}  // namespace
}  // namespace simba::kit
