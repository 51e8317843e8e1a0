#include <gmock/gmock.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <limits>
#include <optional>
#include <thread>

#include "stores/kit/asleep.h"
#include "stores/kit/eventually.h"
#include "stores/sqlite/database.h"
#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

using ::testing::HasSubstr;

StoreTime now() { return StoreTime{milliseconds{fake_boot_ms.load()}}; }

TEST_F(SqliteTest, TakesAFreeMutexForOneLease) {
  const auto store = open_store();
  const Observation got = take(*store, "report", "a~1");
  EXPECT_EQ(got.owner.id, "a~1");
  EXPECT_EQ(got.now, now());
  EXPECT_EQ(got.owner.acquired_at, now());
  EXPECT_EQ(got.owner.ttl_at, now() + 10s);
  EXPECT_EQ(got.owner.transition_at, now() + 16s);
  EXPECT_EQ(observe(*store, "report").owner, got.owner);
}

TEST_F(SqliteTest, TellsALoserWhoOwnsIt) {
  const auto store = open_store();
  const Observation first = take(*store, "report", "a~1");
  pass(1s);
  const Observation lost = take(*store, "report", "b~1");
  EXPECT_EQ(lost.owner, first.owner);
  EXPECT_EQ(lost.now, first.now + 1s);
}

TEST_F(SqliteTest, IsTakenOverOnlyAfterItsTransitionHasEnded) {
  const auto store = open_store();
  const Observation first = take(*store, "report", "a~1");
  pass(16s);
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "a~1");
  pass(1ms);
  const Observation second = take(*store, "report", "b~1");
  EXPECT_EQ(second.owner.id, "b~1");
  EXPECT_GT(second.owner.token, first.owner.token);
}

TEST_F(SqliteTest, GivesARepeatedTakeTheSameTermAndANewLease) {
  const auto store = open_store();
  const Observation first = take(*store, "report", "a~1");
  pass(3s);
  const Observation again = take(*store, "report", "a~1");
  EXPECT_EQ(again.owner.token, first.owner.token);
  EXPECT_EQ(again.owner.acquired_at, first.owner.acquired_at);
  EXPECT_EQ(again.owner.ttl_at, now() + 10s);
}

TEST_F(SqliteTest, GivesATakeAfterItsOwnExpiredLeaseANewTerm) {
  const auto store = open_store();
  const Observation first = take(*store, "report", "a~1");
  pass(16s + 1ms);
  const Observation second = take(*store, "report", "a~1");
  EXPECT_GT(second.owner.token, first.owner.token);
  EXPECT_EQ(second.owner.acquired_at, now());
}

TEST_F(SqliteTest, RenewsARunningLeaseAndKeepsTheStartOfTheTerm) {
  const auto store = open_store();
  const Observation first = take(*store, "report", "a~1");
  pass(16s);
  const Observation renewed = renew(*store, "report", "a~1", first.owner.token);
  EXPECT_EQ(renewed.owner.token, first.owner.token);
  EXPECT_EQ(renewed.owner.acquired_at, first.owner.acquired_at);
  EXPECT_EQ(renewed.owner.transition_at, now() + 16s);
  EXPECT_EQ(observe(*store, "report").owner, renewed.owner);
}

TEST_F(SqliteTest, NeverRenewsWhatIsOverOrNotOurs) {
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  EXPECT_EQ(renew(*store, "report", "b~1", token).owner.id, "a~1");
  EXPECT_EQ(renew(*store, "report", "a~1", token + 1).owner.token, token);
  EXPECT_EQ(renew(*store, "none", "a~1", token).owner, MutexOwner::none());
  EXPECT_TRUE(observe(*store, "none").is_free());
  pass(16s + 1ms);
  const Observation late = renew(*store, "report", "a~1", token);
  EXPECT_TRUE(late.is_free());
}

TEST_F(SqliteTest, KeepsTheTokenAfterARelease) {
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  release(*store, "report", "a~1", token);
  const Observation free = observe(*store, "report");
  EXPECT_TRUE(free.is_free());
  EXPECT_EQ(free.owner.id, "");
  EXPECT_EQ(free.owner.token, token);
  EXPECT_EQ(take(*store, "report", "b~1").owner.token, token + 1);
}

TEST_F(SqliteTest, ReleasesNothingOfAnother) {
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  release(*store, "report", "b~1");
  release(*store, "report", "a~1", token - 1);
  EXPECT_EQ(observe(*store, "report").owner.id, "a~1");
  release(*store, "report", "a~1");
  EXPECT_TRUE(observe(*store, "report").is_free());
}

TEST_F(SqliteTest, MakesATokenAboveTheLastTheFloorAndTheWallClock) {
  const auto store = open_store();
  const Token by_wall = take(*store, "report", "a~1").owner.token;
  EXPECT_EQ(by_wall, static_cast<Token>(fake_wall_us.load()));
  release(*store, "report", "a~1");
  const Token by_floor = take(*store, "report", "a~2", by_wall + 1'000).owner.token;
  EXPECT_EQ(by_floor, by_wall + 1'001);
  release(*store, "report", "a~2");
  EXPECT_EQ(take(*store, "report", "a~3", 7).owner.token, by_floor + 1);
}

TEST_F(SqliteTest, RefusesATokenBeyondItsRangeForThatClaimAlone) {
  const auto store = open_store();
  constexpr Token kHuge = std::numeric_limits<Token>::max();
  const std::vector<Claim> claims{{"a", "x~1", 0, kHuge, 10s, 6s},
                                  {"b", "x~2", kHuge, 0, 10s, 6s},
                                  {"c", "x~3", 0, 0, 10s, 6s}};
  const Answers answers = store->contend(claims, soon());
  EXPECT_EQ(std::get<Error>(answers[0]).errc(), Errc::kMisconfigured);
  EXPECT_EQ(std::get<Error>(answers[1]).errc(), Errc::kMisconfigured);
  EXPECT_EQ(observed(answers[2]).owner.id, "x~3");
}

TEST_F(SqliteTest, SaysThatARowAtTheEndOfTheTokensIsCorruptForThatClaimAlone) {
  const auto store = open_store();
  const Token last = static_cast<Token>(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(take(*store, "b", "x~0", last - 1).owner.token, last);
  release(*store, "b", "x~0");
  const std::vector<Claim> claims{
      {"a", "x~1", 0, 0, 10s, 6s}, {"b", "x~2", 0, 0, 10s, 6s}, {"c", "x~3", 0, 0, 10s, 6s}};
  const Answers answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[0]).owner.id, "x~1");
  EXPECT_EQ(std::get<Error>(answers[1]).errc(), Errc::kCorrupt);
  EXPECT_EQ(observed(answers[2]).owner.id, "x~3");
  EXPECT_EQ(observe(*store, "c").owner.id, "x~3");
}

TEST_F(SqliteTest, AnswersAThousandClaimsOfWhichOneIsBad) {
  const auto store = open_store();
  std::vector<std::string> names(1'000);
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = "mutex-" + std::to_string(1'000 + i);
    if (i == 500) names[i] += std::string(300, 'x');
    claims.push_back({names[i], "a~1", 0, 0, 10s, 6s});
  }
  Answers answers = store->contend(claims, soon());
  ASSERT_EQ(answers.size(), 1'000U);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == 500) continue;
    ASSERT_EQ(observed(answers[i]).owner.id, "a~1") << i;
    claims[i].token = observed(answers[i]).owner.token;
  }
  EXPECT_THAT(std::get<Error>(answers[500]).what(),
              HasSubstr("310 bytes; this store holds at most 255"));
  pass(1s);
  answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[999]).owner.ttl_at, now() + 10s);
  EXPECT_EQ(std::get<Error>(answers[500]).errc(), Errc::kMisconfigured);
  answers = store->release(claims, soon());
  EXPECT_EQ(std::get<Error>(answers[500]).errc(), Errc::kMisconfigured);
  EXPECT_TRUE(observe(*store, names[999]).is_free());
}

TEST_F(SqliteTest, TakesNoClaimWithoutAWireIdOrWithALeaseThatMakesNoSense) {
  const auto store = open_store();
  for (const Claim& claim : {Claim{"a", "", 0, 0, 10s, 6s}, Claim{"", "a~1", 0, 0, 10s, 6s},
                             Claim{"a", "a~1", 0, 0, 0s, 6s}, Claim{"a", "a~1", 0, 0, 10s, -1ms},
                             Claim{"a", "a~1", 0, 0, milliseconds::max(), 6s}}) {
    EXPECT_EQ(std::get<Error>(contend(*store, claim)).errc(), Errc::kMisconfigured);
  }
  EXPECT_TRUE(store->list("", {}, 10, soon()).empty());
}

TEST_F(SqliteTest, TreatsARowOfAnotherBootAsFreeButForItsToken) {
  Token token = 0;
  {
    const auto store = open_store();
    token = take(*store, "report", "a~1").owner.token;
  }
  const auto store = open_store(fake_host("22222222-2222-2222-2222-222222222222"));
  fake_boot_ms -= 900'000;  // an hour-old lease lies far ahead of a clock that began anew
  const Observation seen = observe(*store, "report");
  EXPECT_TRUE(seen.is_free());
  EXPECT_EQ(seen.owner.id, "");
  EXPECT_EQ(seen.owner.token, token);
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner.id, "");
  const Observation taken = take(*store, "report", "b~1");
  EXPECT_EQ(taken.owner.id, "b~1");
  EXPECT_EQ(taken.owner.token, token + 1);
  fake_boot_ms += 900'000;
}

TEST_F(SqliteTest, EvictsByTakingTheNameAndKeepingTheLease) {
  const auto store = open_store();
  const Observation owned = take(*store, "report", "a~1");
  const auto evicted =
      store->evict("report", "a~1", owned.owner.token, Eviction::kKeepLease, soon());
  EXPECT_EQ(evicted.owner.id, "");
  EXPECT_EQ(evicted.owner.transition_at, owned.owner.transition_at);
  EXPECT_EQ(renew(*store, "report", "a~1", owned.owner.token).owner.id, "");
  pass(16s);
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "");
  pass(1ms);
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "b~1");
}

TEST_F(SqliteTest, EvictsAtOnceWhenAskedTo) {
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  EXPECT_EQ(store->evict("report", "a~1", token + 1, Eviction::kFreeNow, soon()).owner.id, "a~1");
  EXPECT_TRUE(store->evict("report", "a~1", token, Eviction::kFreeNow, soon()).is_free());
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "b~1");
}

TEST_F(SqliteTest, ObservesManyInOneAnswer) {
  const auto store = open_store();
  take(*store, "a", "x~1");
  take(*store, "c", "x~2");
  const std::vector<std::string_view> names{"a", "b", "c"};
  const Answers answers = store->observe(names, soon());
  EXPECT_EQ(observed(answers[0]).owner.id, "x~1");
  EXPECT_EQ(observed(answers[1]).owner, MutexOwner::none());
  EXPECT_EQ(observed(answers[2]).owner.id, "x~2");
}

TEST_F(SqliteTest, ListsByPrefixSortedAndLimited) {
  const auto store = open_store();
  for (const char* name : {"job-b", "job-a", "jo", "job%", "kob"}) take(*store, name, "x~1");
  std::vector<std::string> names;
  for (const Listed& listed : store->list("job", {}, 2, soon())) names.push_back(listed.mutex);
  EXPECT_EQ(names, (std::vector<std::string>{"job%", "job-a"}));
  EXPECT_EQ(store->list("", {}, 100, soon()).size(), 5U);
  EXPECT_EQ(store->list("x", {}, 100, soon()).size(), 0U);
}

TEST_F(SqliteTest, HoldsNamesOfEveryOddCharacterApart) {
  const auto store = open_store();
  std::vector<std::string> names{"job",   "JOB",  "job ", " job", "it's",
                                 "a\"b",  "a;--", "%_",   "\\",   "?1",
                                 "x'00'", "näme", "名前", "😀",    std::string(255, 'n')};
  for (char c = 0x20; c < 0x7f; ++c) names.push_back(std::string("c") + c);
  for (const std::string& name : names) {
    ASSERT_NO_THROW(store->check_mutex(name)) << name;
    const std::string id = name.substr(0, 240) + "~1";
    ASSERT_EQ(take(*store, name, id).owner.id, id) << name;
  }
}

TEST_F(SqliteTest, GivesUpAtTheDeadlineWhileSomebodyHoldsTheWriteLock) {
  const auto store = open_store();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  const LocalTime begin = local_now();
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, begin + 30ms);
              }),
              ::testing::AllOf(HasSubstr("the deadline passed"), HasSubstr("locks.db")));
  EXPECT_GE(local_now(), begin + 30ms);
  EXPECT_TRUE(observe(*store, "report").is_free());  // readers are not in the way
  sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(take(*store, "report", "a~1").owner.id, "a~1");
}

// The lease ends between the claim and the look at who has the mutex.
TEST_F(SqliteTest, WhoIsRefusedIsNotToldThatTheMutexIsFree) {
  Host host = fake_host();
  host.boot_ms = [] { return fake_boot_ms++; };
  const auto store = open_store(host);
  for (int early = 0; early < 20; ++early) {
    const std::string mutex = "report-" + std::to_string(early);
    const StoreTime end = take(*store, mutex, "a~1").owner.transition_at;
    fake_boot_ms = end.time_since_epoch().count() - early;
    Observation last;
    while (last.owner.id != "b~1") {
      last = take(*store, mutex, "b~1");
      EXPECT_FALSE(last.is_free());
    }
    EXPECT_GT(last.now, end);
  }
}

// Stands in line to write from the constructor on, and lets the next one in at once.
class Writer {
 public:
  Writer(Database& database, Database::Access access, std::atomic<int>& order)
      : thread_([this, &database, access, &order] {
          thread_id_ = gettid();
          const auto mine = database.borrow(access, local_now() + 60s);
          place = ++order;
        }) {
    EXPECT_TRUE(kit::eventually([&] { return kit::is_asleep(thread_id_); }));
  }

  std::atomic<int> place{0};

 private:
  std::atomic<pid_t> thread_id_{0};
  std::jthread thread_;
};

TEST_F(SqliteTest, WritesForTermsThatAreKeptBeforeThoseThatAreWanted) {
  using enum Database::Access;
  Database database(file, options().synchronous, fake_host(), soon());
  std::optional<Database::Borrowed> held(database.borrow(kTake, soon()));
  std::atomic<int> order{0};
  const Writer first(database, kTake, order), second(database, kTake, order);
  const Writer renewal(database, kKeep, order), release(database, kKeep, order);
  held.reset();
  EXPECT_TRUE(kit::eventually([&] { return order == 4; }));
  EXPECT_LE(renewal.place, 2) << "it stood in the queue of the others";
  EXPECT_LE(release.place, 2);
}

TEST_F(SqliteTest, DoesNothingOnceTheDeadlineHasPassed) {
  const auto store = open_store();
  const Claim claim{"report", "a~1", 0, 0, 10s, 6s};
  EXPECT_THAT(error_of([&] {
                store->contend({&claim, 1}, local_now());
              }),
              HasSubstr("nothing was changed"));
  EXPECT_TRUE(observe(*store, "report").is_free());
}

TEST_F(SqliteTest, UndoesABatchThatOutlivesItsDeadline) {
  const auto store = open_store();
  std::vector<std::string> names(100'000);
  std::vector<Claim> claims(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = "mutex-" + std::to_string(1'000'000 + i);
    claims[i] = {names[i], "a~1", 0, 0, 10s, 6s};
  }
  EXPECT_THAT(error_of([&] { store->contend(claims, local_now() + 5ms); }),
              HasSubstr("the deadline passed"));
  EXPECT_TRUE(store->list("", {}, 1, soon()).empty());
}

TEST_F(SqliteTest, CountsTheLeaseFromWhenTheWriteLockWasGot) {
  const auto store = open_store();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  Observation got;
  std::thread contender([&] { got = take(*store, "report", "a~1"); });
  // Whoever waits for the lock uses processor time: first awake, then in naps.
  clockid_t clock{};
  ASSERT_EQ(pthread_getcpuclockid(contender.native_handle(), &clock), 0);
  for (timespec used{}; used.tv_sec == 0 && used.tv_nsec < 1'000'000;) clock_gettime(clock, &used);
  pass(5s);
  sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  contender.join();
  sqlite3_close(other);
  EXPECT_EQ(got.now, now());
  EXPECT_EQ(got.owner.ttl_at, now() + 10s);
}

TEST_F(SqliteTest, AnswersManyThreadsAtOnce) {
  const auto store = open_store();
  std::atomic<int> owners{0};
  std::vector<std::jthread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, id = "t~" + std::to_string(i)] {
      for (int round = 0; round < 50; ++round) {
        if (take(*store, "one", id).owner.id != id) continue;
        EXPECT_EQ(owners.fetch_add(1), 0);
        observe(*store, "one");
        owners.fetch_sub(1);
        release(*store, "one", id);
      }
    });
  }
}

}  // namespace
}  // namespace simba::sqlite
