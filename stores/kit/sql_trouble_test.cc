// What happens to connections and rows on a running server, whatever it is. Compiled once for each
// store in SQL, as sql_store_test.cc is.
#include SIMBA_SQL_FIXTURE

#include <functional>
#include <stdexcept>
#include <thread>

namespace simba::kit {
namespace {

using namespace fixture;  // NOLINT(google-build-using-namespace): for tests alone
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class SqlTroubleTest : public SqlFixture {};

TEST_F(SqlTroubleTest, ConnectionsThatAreCutAreMadeAnewAndNobodyLosesHisTerm) {
  prepare_user();
  const Client client(open(user)), rival(open_elsewhere(user));
  Contender owner(client, "report", steady_lease());
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  Contender waiter(rival, "report", steady_lease());
  for (int round = 0; round < 6; ++round) {
    ASSERT_TRUE(eventually([&] { return count_connections("TRUE") >= 2; }));
    cut_connections();
    EXPECT_TRUE(round % 2 == 0 || owner.is_renewed());
  }
  EXPECT_EQ(owner.released(), 0);
  EXPECT_EQ(waiter.acquired(), 0);
  owner.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); }));
}

TEST_F(SqlTroubleTest, AReaderThatWasCutHearsAgainAndTellsSoMeanwhile) {
  prepare_user();
  const auto store = open(user), other = open_elsewhere(user);
  std::atomic<int> wakes{0};
  const auto watch = store->watch("report", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live() && wakes > 0; }));
  wakes = 0;
  cut_connections();
  ASSERT_TRUE(eventually([&] { return log.count("waiters poll until this is over") == 1; }));
  EXPECT_THAT(log.all(), Contains(AllOf(HasSubstr("waiters poll until this is over"),
                                        HasSubstr(" at "), HasSubstr("connection"))));
  ASSERT_TRUE(eventually([&] { return wakes > 0 && watch->is_live(); }))
      << "a gap ends with a hint";
  EXPECT_TRUE(eventually([&] { return can_take(*other); }));
  wakes = 0;
  release(*other, "report", "a~1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "no hint after the gap";
}

TEST_F(SqlTroubleTest, AStoreThatIsGoneIsToldNothingAndItsNeighbourEverything) {
  prepare_user();
  Lines first, second;
  auto same = options(user);
  same.log = first.sink();
  auto gone = open_with(same);
  same.log = second.sink();
  const auto left = open_with(same);
  const auto watch = left->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  gone.reset();
  cut_connections();
  EXPECT_TRUE(eventually([&] { return second.count("waiters poll until this is over") == 1; }));
  EXPECT_EQ(first.count("waiters poll"), 0U);
}

// Terms that only batches renew: one of them for all, again and again, among them "locked". A
// contender would ask for each alone where a batch tells it nothing, and hide that.
class OneBatch {
 public:
  explicit OneBatch(std::shared_ptr<Store> store) : store_(std::move(store)) {
    for (Claim& each : claims_) each.token = take(*store_, each.mutex, each.wire_id).owner.token;
  }
  // Returns what became of the others; empty: all are renewed.
  std::string renew_until(LocalTime end) {
    while (BootClock::now() < end) {
      try {
        note(store_->contend(claims_, BootClock::now() + 4s));
      } catch (const Error& error) {  // the machine is busy: the lease is longer
        said_ = error.what();
      }
      StopSignal().pause(500ms);
    }
    for (const Claim& each : claims_) {
      const Observation seen = observe(*store_, each.mutex);
      const bool is_kept = seen.owner.token == each.token && !seen.is_free();
      if (!is_kept && each.mutex != kLocked) return std::string(each.mutex) + ' ' + said_;
    }
    return {};
  }
  static constexpr const char* kLocked = "locked";

 private:
  void note(const Answers& answers) {
    for (const Answer& each : answers) {
      if (const auto* error = std::get_if<Error>(&each)) said_ = error->what();
    }
  }
  const std::shared_ptr<Store> store_;
  std::vector<Claim> claims_{{"a-neighbour", "x~1", 0, 0, 9s, 6s},
                             {kLocked, "x~1", 0, 0, 9s, 6s},
                             {"z-neighbour", "x~1", 0, 0, 9s, 6s}};
  std::string said_ = "is not renewed";
};

TEST_F(SqlTroubleTest, ARowLockedByAStrangerForHalfAMinuteCostsItsNeighboursNothing) {
  constexpr std::size_t kMutexes = 20, kLocked = 5;
  std::atomic<std::size_t> largest{0};  // of the calls that went well: how many claims
  ClientOptions watched;
  watched.on_event = [&](const Event& event) {
    if (event.kind == Event::Kind::kCalled && event.error == nullptr && event.claims > largest) {
      largest = event.claims;
    }
  };
  watched.log = log.sink();
  const Client client(open(), watched);
  std::vector<std::unique_ptr<Contender>> all;
  for (std::size_t i = 0; i < kMutexes; ++i) {
    all.push_back(std::make_unique<Contender>(client, "m" + std::to_string(10 + i), lease(9s, 6s)));
  }
  for (const auto& each : all) ASSERT_TRUE(eventually([&] { return each->is_owner(); }));
  OneBatch batch(open());
  auto stranger = lock_row("m15");
  const auto another = lock_row(OneBatch::kLocked);
  const LocalTime locked = BootClock::now();
  largest = 0;
  EXPECT_TRUE(eventually([&] { return !all[kLocked]->is_owner(); }, 15s))
      << "believed past its lease";
  EXPECT_TRUE(eventually([&] { return all[kLocked]->released() == 1; }));
  EXPECT_EQ(batch.renew_until(locked + 30s), "") << "one locked row held up its batch";
  EXPECT_EQ(all[kLocked]->acquired(), 1) << "a locked row was taken";
  EXPECT_GE(largest, kMutexes / 4) << "they were renewed one by one";
  EXPECT_THAT(log.all(),
              Contains(AllOf(HasSubstr("'m15': somebody else seems to hold a lock on its row; "),
                             HasSubstr(" at "), HasSubstr(kRowLocks))));
  EXPECT_EQ(log.count("'m15': somebody"), 1U) << "one line, not one for each try";
  for (std::size_t i = 0; i < kMutexes; ++i) {
    if (i == kLocked) continue;
    EXPECT_TRUE(all[i]->is_owner()) << i;
    EXPECT_EQ(all[i]->released(), 0) << i;
  }
  stranger.reset();
  EXPECT_TRUE(eventually([&] { return all[kLocked]->is_owner(); })) << "it goes on by itself";
}

TEST_F(SqlTroubleTest, ARowThatAStrangerIsInsertingCostsItsNeighboursNothingButAMoment) {
  make_table();
  auto stranger = begin_insert("m3");
  ClientOptions watched;
  watched.log = log.sink();
  std::atomic<std::size_t> largest{0};
  watched.on_event = [&](const Event& event) { largest = std::max(largest.load(), event.claims); };
  const Client client(open(), watched);
  std::vector<std::unique_ptr<Contender>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::make_unique<Contender>(client, "m" + std::to_string(i), lease(9s, 6s)));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 3) continue;
    EXPECT_TRUE(eventually([&] { return all[i]->is_owner(); })) << i;
  }
  EXPECT_GT(largest, 1U) << "nothing was asked together";
  EXPECT_TRUE(
      eventually([&] { return log.count("'m3': somebody else seems to hold a lock") > 0; }));
  EXPECT_EQ(log.count("the store's trouble"), 0U) << "the whole batch failed";
  EXPECT_FALSE(all[3]->is_owner());
  stranger.reset();
  EXPECT_TRUE(eventually([&] { return all[3]->is_owner(); })) << "it goes on by itself";
}

// What an administrator mends is noticed by contenders that run: none has to be started again.

TEST_F(SqlTroubleTest, AContenderWithAWrongPasswordOwnsOnceItIsRight) {
  if (!asks_for_passwords()) GTEST_SKIP() << "who needs a password is up to your server";
  prepare_user(with_password("right"));
  need_password();
  const Afflicted contender(open(user + ":mistaken"));
  ASSERT_TRUE(eventually([&] { return contender.was_told("the store denied"); }, kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  alter_user(with_password("mistaken"));
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(SqlTroubleTest, AContenderWithoutATableOwnsOnceItIsMade) {
  make_user();
  const Afflicted contender(open(user));
  ASSERT_TRUE(eventually([&] { return contender.was_told("the store denied"); }, kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  make_table();
  grant();
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(SqlTroubleTest, AContenderWithoutAPrivilegeOwnsOnceItIsGranted) {
  make_user();
  make_table();
  grant("SELECT");
  const Afflicted contender(open(user));
  ASSERT_TRUE(eventually([&] { return contender.was_told("GRANT SELECT, INSERT, UPDATE"); },
                         kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  grant();
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

TEST_F(SqlTroubleTest, AContenderWithoutAConnectionOwnsOnceSomeAreFree) {
  constexpr int kNeeded = 3;  // one for all, one in reserve, one that waits
  prepare_user(with_connections(kNeeded));
  std::vector<decltype(connect_as(user))> others;
  for (int i = 0; i < kNeeded; ++i) others.push_back(connect_as(user));
  const Afflicted contender(open(user));
  ASSERT_TRUE(eventually([&] { return contender.was_told("max_connections"); }, kLongPatience));
  EXPECT_FALSE(contender.is_owner());
  others.clear();
  EXPECT_TRUE(eventually([&] { return contender.is_owner(); }, kLongPatience));
}

// An owner meets trouble: ownership is never believed past the lease of the last renewal.
class SqlOwnerTest : public SqlTroubleTest {
 protected:
  void begin(const std::string& as) {
    owner_ = std::make_unique<Afflicted>(open(as));
    ASSERT_TRUE(eventually([&] { return owner_->is_owner(); }, kLongPatience));
  }
  void expect_end(
      const std::string& advice, const std::function<void()>& again = [] {}) const {
    owner_->expect_end(advice, again);
  }
  void expect_recovery() const {
    EXPECT_TRUE(eventually([&] { return owner_->is_owner(); }, kLongPatience))
        << "it goes on by itself";
  }

 private:
  std::unique_ptr<Afflicted> owner_;
};

TEST_F(SqlOwnerTest, WhoseRightIsTakenLosesItsTermInTimeAndOwnsAgainOnceItIsGranted) {
  prepare_user();
  begin(user);
  admin()("REVOKE INSERT, UPDATE ON " + table + " FROM " + user);
  expect_end("GRANT SELECT, INSERT, UPDATE");
  grant();
  expect_recovery();
}

TEST_F(SqlOwnerTest, WhosePasswordIsChangedLosesItsTermInTimeAndOwnsAgainOnceItIsRight) {
  if (!asks_for_passwords()) GTEST_SKIP() << "who needs a password is up to your server";
  prepare_user(with_password("right"));
  need_password();
  begin(user + ":right");
  alter_user(with_password("changed"));
  expect_end("password", [&] { cut_connections(); });
  alter_user(with_password("right"));
  expect_recovery();
}

TEST_F(SqlOwnerTest, WhoseTableIsGoneLosesItsTermInTimeAndOwnsAgainOnceItIsBack) {
  prepare_user();
  begin(user);
  admin()("ALTER TABLE " + table + " RENAME TO " + table + "_away");
  expect_end("GRANT SELECT, INSERT, UPDATE");
  admin()("ALTER TABLE " + table + "_away RENAME TO " + table);
  expect_recovery();
}

TEST_F(SqlOwnerTest, WhoFindsNoConnectionAnyMoreLosesItsTermInTimeAndOwnsAgainOnceSomeAreFree) {
  prepare_user(with_connections(9));
  begin(user);
  alter_user(with_connections(1));
  decltype(connect_as(user)) other;
  ASSERT_TRUE(eventually([&] {
    cut_connections();
    try {
      other = connect_as(user);
    } catch (const std::runtime_error&) {  // the owner was faster
    }
    return other != nullptr;
  }));
  expect_end("max_connections");
  other.reset();
  alter_user(with_connections(9));
  expect_recovery();
}

}  // namespace
}  // namespace simba::kit
