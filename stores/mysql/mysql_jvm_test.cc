#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>

#include "simba/locker.h"
#include "stores/mysql/mysql_fixture.h"

// Beside JVM Simba: its table, old and new, and its statements, run by hand as it runs them.
namespace simba::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What a JVM contender does, in the order of its repository.
class Jvm {
 public:
  enum class Kind { kBefore33, kSince33 };  // raises tokens, or does not know of them
  Jvm(const MysqlOptions& options, std::string table, Kind kind = Kind::kBefore33)
      : db_(options), table_(std::move(table)), kind_(kind) {}

  // false: the row is there.
  bool try_init(const std::string& mutex) {
    try {
      db_("INSERT INTO " + table_ +
          " (mutex, acquired_at, ttl_at, transition_at, owner_id, version) VALUES ('" + mutex +
          "', 0, 0, 0, '', 0)");
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  // BEGIN, UPDATE, SELECT, COMMIT. True: this contender owns it now.
  bool acquire(const std::string& mutex, const std::string& id, int ttl = 10'000,
               int transition = 6'000) {
    const std::string now = "CAST(UNIX_TIMESTAMP(CURRENT_TIMESTAMP(3)) * 1000 AS UNSIGNED)";
    // Assigned from left to right: before the owner.
    const std::string token = kind_ == Kind::kBefore33
                                  ? ""
                                  : "fencing_token = IF(owner_id = '" + id +
                                        "' AND transition_at > " + now +
                                        ", fencing_token, fencing_token + 1), ";
    db_("BEGIN");
    db_("UPDATE " + table_ + " SET " + token + "acquired_at = " + now + ", ttl_at = " + now +
        " + " + std::to_string(ttl) + ", transition_at = " + now + " + " +
        std::to_string(ttl + transition) + ", owner_id = '" + id +
        "', version = version + 1 WHERE mutex = '" + mutex + "' AND (transition_at < " + now +
        " OR (owner_id = '" + id + "' AND transition_at > " + now + "))");
    const std::string owner =
        db_("SELECT owner_id FROM " + table_ + " WHERE mutex = '" + mutex + '\'');
    db_("COMMIT");
    return owner == id;
  }
  void release(const std::string& mutex, const std::string& id) {
    db_("UPDATE " + table_ +
        " SET acquired_at = 0, ttl_at = 0, transition_at = 0, owner_id = '', version = version + 1 "
        "WHERE mutex = '" +
        mutex + "' AND owner_id = '" + id + '\'');
  }

 private:
  Admin db_;
  const std::string table_;
  const Kind kind_;
};

class MysqlJvmTest : public MysqlTest {
 protected:
  void make_old_table() { admin()(jvm_table_sql(table)); }
  Jvm jvm() { return Jvm(options(), table); }
  // Also with the statements for MySQL, which every server understands. The tables are new each
  // time.
  void with_each_dialect(const std::function<void(const std::shared_ptr<Store>& store)>& run) {
    for (const std::string dialect : {"dialect=detect", "dialect=mysql"}) {
      SCOPED_TRACE(dialect);
      run(open({}, dialect));
      admin()("DROP TABLE " + table);
    }
  }
  // Each in turn, and nobody while the other has it.
  void expect_exclusion(const std::shared_ptr<Store>& store) {
    Jvm other = jvm();
    EXPECT_TRUE(other.try_init("report"));
    EXPECT_FALSE(other.try_init("report"));
    for (int round = 0; round < 3; ++round) {
      const Token token = take(*store, "report", "cpp~1").owner.token;
      EXPECT_FALSE(other.acquire("report", "jvm"));
      EXPECT_EQ(renew(*store, "report", "cpp~1", token).owner.token, token);
      EXPECT_FALSE(other.acquire("report", "jvm"));
      other.release("report", "jvm");
      EXPECT_EQ(observe(*store, "report").owner.id, "cpp~1");
      release(*store, "report", "cpp~1", token);
      EXPECT_TRUE(other.acquire("report", "jvm"));
      EXPECT_EQ(take(*store, "report", "cpp~2").owner.id, "jvm");
      const std::vector<Claim> batch{{"other", "cpp~2", 0, 0, 10s, 6s},
                                     {"report", "cpp~2", 0, 0, 10s, 6s}};
      EXPECT_EQ(observed(store->contend(batch, soon())[1]).owner.id, "jvm");
      release(*store, "other", "cpp~2");
      EXPECT_TRUE(other.acquire("report", "jvm")) << "its renewal";
      release(*store, "report", "cpp~2");
      EXPECT_EQ(observe(*store, "report").owner.id, "jvm");
      other.release("report", "jvm");
      EXPECT_TRUE(observe(*store, "report").is_free());
    }
    // Neither enters before the other's lease is over, and each after it.
    EXPECT_TRUE(other.acquire("report", "jvm", 300, 200));
    EXPECT_EQ(take(*store, "report", "cpp~3").owner.id, "jvm");
    EXPECT_TRUE(eventually([&] { return take(*store, "report", "cpp~3").owner.id == "cpp~3"; }));
    EXPECT_FALSE(other.acquire("report", "jvm"));
  }
};

TEST_F(MysqlJvmTest, ContendersOfBothExcludeEachOtherOnANewTable) {
  with_each_dialect([&](const auto& store) {
    make_table();
    expect_exclusion(store);
  });
}

TEST_F(MysqlJvmTest, TokensGrowFromTermToTermOfBoth) {
  with_each_dialect([&](const auto& store) {
    make_table();
    Jvm other(options(), table, Jvm::Kind::kSince33);
    other.try_init("report");
    const auto stored = [&] { return std::stoull(row("report", "fencing_token")); };
    Token last = 0;
    for (int round = 0; round < 3; ++round) {
      EXPECT_TRUE(other.acquire("report", "jvm"));
      const Token theirs = stored();
      EXPECT_GT(theirs, last);
      EXPECT_TRUE(other.acquire("report", "jvm")) << "its renewal";
      EXPECT_EQ(stored(), theirs) << "of one term";
      EXPECT_EQ(take(*store, "report", "cpp~1").owner.token, theirs) << "who owns it, and as what";
      other.release("report", "jvm");
      EXPECT_EQ(stored(), theirs);
      last = take(*store, "report", "cpp~1").owner.token;
      EXPECT_GT(last, theirs);
      EXPECT_EQ(renew(*store, "report", "cpp~1", last).owner.token, last);
      EXPECT_EQ(stored(), last);
      release(*store, "report", "cpp~1", last);
    }
  });
}

TEST_F(MysqlJvmTest, ContendersOfBothExcludeEachOtherOnAnOldTable) {
  with_each_dialect([&](const auto& store) {
    make_old_table();
    expect_exclusion(store);
  });
}

TEST_F(MysqlJvmTest, ManyOfBothNeverOwnAtTheSameTime) {
  make_old_table();
  jvm().try_init("report");
  std::atomic<int> inside{0}, overlaps{0}, by_jvm{0}, by_us{0};
  const LocalTime began = BootClock::now();
  const auto goes_on = [&] {  // for a while, and until both had it
    const nanoseconds lasted = BootClock::now() - began;
    return lasted < 3s || (lasted < 40s && (by_jvm == 0 || by_us == 0));
  };
  const auto work = [&](std::atomic<int>& count) {
    if (inside.fetch_add(1) != 0) ++overlaps;
    std::this_thread::sleep_for(1ms);
    inside.fetch_sub(1);
    ++count;
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, id = "jvm" + std::to_string(i)] {
        Jvm me = jvm();
        while (goes_on()) {
          if (!me.acquire("report", id)) continue;
          work(by_jvm);
          me.release("report", id);
        }
      });
      threads.emplace_back([&, i] {
        const auto store = open();
        for (int n = 0; goes_on(); ++n) {
          const std::string id = "cpp" + std::to_string(i) + '~' + std::to_string(n);
          if (take(*store, "report", id).owner.id != id) continue;
          work(by_us);
          release(*store, "report", id);
        }
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_GT(by_jvm, 0);
  EXPECT_GT(by_us, 0);
}

TEST_F(MysqlJvmTest, AnOldTableWorksAndItIsSaidOnceWhatItLacks) {
  make_old_table();
  const auto store = open();
  const Token first = take(*store, "report", "a~1").owner.token;
  EXPECT_EQ(row("report", "version"), std::to_string(first)) << "the token is the version";
  EXPECT_EQ(take(*store, "report", "a~1").owner.token, first) << "of a take that is repeated";
  EXPECT_EQ(renew(*store, "report", "a~1", first).owner.token, first) << "it is kept for the term";
  const std::vector<Claim> batch{{"other", "x~1", first, 0, 10s, 6s},
                                 {"report", "a~1", first, 0, 10s, 6s}};
  EXPECT_EQ(observed(store->contend(batch, soon())[1]).owner.token, first);
  release(*store, "report", "a~1", first);
  const Token second = take(*store, "report", "b~1").owner.token;
  EXPECT_GT(second, first);
  EXPECT_GT(take(*store, "new", "b~1", 1'000).owner.token, 1'000U) << "above what was seen";
  take(*open_elsewhere(), "other", "c~1");
  EXPECT_EQ(log.count("is of an older kind: ids have at most 32 characters"), 2U)
      << "once for each store";
  EXPECT_EQ(log.count("ADD COLUMN fencing_token"), 2U);
}

TEST_F(MysqlJvmTest, AnOldTableRefusesAnIdThatIsTooLongByItself) {
  make_old_table();
  const auto store = open();
  const std::string id = "a-label-of-some-length~0123456789abc";
  const std::vector<Claim> claims{{"a", "x~1", 0, 0, 10s, 6s}, {"b", id, 0, 0, 10s, 6s}};
  const Answers answers = store->contend(claims, soon());
  EXPECT_EQ(observed(answers[0]).owner.id, "x~1");
  EXPECT_THAT(std::get<Error>(answers[1]).what(),
              AllOf(HasSubstr("36 bytes"), HasSubstr("ids of 32"), HasSubstr("max_id_length=32")));
  EXPECT_EQ(open({}, "max_id_length=32")->traits().max_wire_id_length, 32U);
}

TEST_F(MysqlJvmTest, OtherSpellingsAreOthers) {
  with_each_dialect([&](const auto& store) {
    make_old_table();
    const Token token = take(*store, "report", "Owner~1").owner.token;
    for (const char* other : {"OWNER~1", "owner~1", "Owner~1 "}) {
      EXPECT_EQ(take(*store, "report", other).owner.id, "Owner~1");
      EXPECT_EQ(renew(*store, "report", other, token).owner.id, "Owner~1");
      release(*store, "report", other, token);
      EXPECT_EQ(observe(*store, "report").owner.id, "Owner~1");
    }
  });
}

TEST_F(MysqlJvmTest, AMutexThatExistsUnderAnotherSpellingIsAnErrorThatNamesBoth) {
  with_each_dialect([&](const auto& store) {
    make_old_table();
    jvm().try_init("JOB");
    const std::string before =
        row("JOB", "CONCAT_WS(',', mutex, owner_id, version, transition_at)");
    const auto spelled = AllOf(StartsWith("misconfigured"), HasSubstr("'job'"), HasSubstr("'JOB'"),
                               HasSubstr("VARBINARY"));
    EXPECT_THAT(error_of([&] { take(*store, "job", "a~1"); }), spelled);
    EXPECT_THAT(error_of([&] { renew(*store, "job", "a~1", 1); }), spelled);
    EXPECT_THAT(error_of([&] { observe(*store, "job"); }), spelled);
    const std::vector<Claim> batch{{"job", "a~1", 0, 0, 10s, 6s}, {"other", "a~1", 0, 0, 10s, 6s}};
    const Answers answers = store->contend(batch, soon());
    EXPECT_THAT(std::get<Error>(answers[0]).what(), HasSubstr("'JOB'"));
    EXPECT_EQ(observed(answers[1]).owner.id, "a~1");
    release(*store, "job", "a~1");
    EXPECT_EQ(row("JOB", "CONCAT_WS(',', mutex, owner_id, version, transition_at)"), before);
    EXPECT_THAT(error_of([&] { take(*store, "JOB ", "a~1"); }), HasSubstr("'JOB '"));
    EXPECT_EQ(take(*store, "JOB", "a~1").owner.id, "a~1");
    admin()("DELETE FROM " + table + " WHERE mutex = 'JOB'");
    EXPECT_EQ(take(*store, "job", "a~1").owner.id, "a~1") << "the other is gone";
    admin()("ALTER TABLE " + table + " MODIFY mutex VARBINARY(66) NOT NULL");
    EXPECT_TRUE(eventually([&] { return can_take(*store, "JOB"); })) << "names are bytes now";
  });
}

TEST_F(MysqlJvmTest, ATableOfAnotherCharacterSetHoldsWhatItCan) {
  with_each_dialect([&](const auto& store) {
    make_old_table();
    admin()("ALTER TABLE " + table + " CONVERT TO CHARACTER SET latin1");
    const std::string name =
        "gr\xc3\xbc\xc3\x9f"
        "e";  // u with dots and sharp s: latin1 has both
    const Token token = take(*store, name, "\xc3\xa4~1").owner.token;
    EXPECT_EQ(renew(*store, name, "\xc3\xa4~1", token).owner.id, "\xc3\xa4~1");
    const std::vector<Claim> batch{{name, "\xc3\xa4~1", token, 0, 10s, 6s},
                                   {"other", "x~1", 7, 0, 10s, 6s}};
    EXPECT_EQ(observed(store->contend(batch, soon())[0]).owner.id, "\xc3\xa4~1");
    EXPECT_EQ(store->list("gr", {}, 9, soon()).at(0).mutex, name);
    release(*store, name, "\xc3\xa4~1", token);
    EXPECT_TRUE(observe(*store, name).is_free());
    const std::string day = "\xe6\x97\xa5";  // it has not
    EXPECT_THAT(error_of([&] { take(*store, day, "a~1"); }), StartsWith("misconfigured"));
    EXPECT_THAT(error_of([&] { take(*store, "third", day + "~1"); }), StartsWith("misconfigured"));
    const std::string its = day + "~1";
    const std::vector<Claim> owned{{"other", "x~1", 0, 0, 10s, 6s}, {"third", its, 0, 0, 10s, 6s}};
    Answers owners;
    const std::string error = error_of([&] { owners = store->contend(owned, soon()); });
    if (is_mariadb()) {  // says so, without a word about which it is
      EXPECT_THAT(error, StartsWith("misconfigured"));
    } else {
      EXPECT_EQ(error, "none");
      EXPECT_EQ(observed(owners.at(0)).owner.id, "x~1");
      EXPECT_TRUE(std::holds_alternative<Blocked>(owners.at(1))) << "it is asked alone";
    }
    EXPECT_EQ(observe(*store, "third").owner.id, "") << "it has an owner of another name";
    const std::vector<Claim> named{{"other", "x~1", 0, 0, 10s, 6s}, {day, "x~1", 0, 0, 10s, 6s}};
    const Answers answers = store->contend(named, soon());
    EXPECT_EQ(observed(answers[0]).owner.id, "x~1");
    EXPECT_TRUE(std::holds_alternative<Blocked>(answers[1])) << "it is asked alone";
    EXPECT_EQ(row("?", "mutex"), "") << "a row of another name was made";
    EXPECT_EQ(take(*store, "third", "a~1").owner.id, "a~1");
  });
}

TEST_F(MysqlJvmTest, AnOldTableIsBroughtUpToDateWhileBothContend) {
  make_old_table();
  jvm().try_init("held-by-jvm");
  ASSERT_TRUE(jvm().acquire("held-by-jvm", "jvm", 60'000));
  const Client client(open());
  Contender ours(client, "report", lease(6s, 4s));
  ASSERT_TRUE(eventually([&] { return ours.is_owner(); }));
  const Token before = ours.token();
  std::atomic<bool> done{false};
  std::atomic<int> turns{0};
  std::jthread busy([&] {
    Jvm other = jvm();
    other.try_init("busy");
    while (!done) {
      if (!other.acquire("busy", "jvm")) continue;
      other.release("busy", "jvm");
      ++turns;
    }
  });
  ASSERT_TRUE(eventually([&] { return turns > 20; }));
  const std::string ran = create_mysql_table(options());
  EXPECT_THAT(ran, AllOf(HasSubstr("ALTER TABLE"), HasSubstr("owner_id VARCHAR(128)"),
                         HasSubstr("ADD COLUMN fencing_token"), Not(HasSubstr("CREATE"))));
  EXPECT_EQ(create_mysql_table(options()), "") << "there is nothing left to do";
  const int turned = turns;
  ASSERT_TRUE(eventually([&] { return turns > turned + 20; })) << "JVM contenders go on";
  done = true;
  busy.join();
  EXPECT_EQ(row("held-by-jvm", "owner_id"), "jvm") << "no row is lost";
  // A connection that knows the old table numbers no term by the version any more.
  const auto store = open();
  const Token after = take(*store, "another", "b~1").owner.token;
  EXPECT_GT(after, 1'000'000'000'000'000U) << "by the clock";
  EXPECT_TRUE(ours.is_renewed());
  EXPECT_EQ(ours.released(), 0) << "our term outlives it";
  EXPECT_EQ(ours.token(), before);
}

// Before it the token is the version; a JVM contender that raises tokens adds one to what it finds.
TEST_F(MysqlJvmTest, TokensGrowAcrossTheUpgradeBesideAJvmContenderThatRaisesThem) {
  make_old_table();
  jvm().try_init("report");
  std::mutex guard;
  std::vector<Token> tokens;  // in the order of the terms, guarded by guard
  std::atomic<int> by_us{0}, by_jvm{0};
  std::atomic<bool> done{false};
  const auto note = [&](Token token, std::atomic<int>& count) {
    const std::lock_guard lock(guard);
    tokens.push_back(token);
    ++count;
  };
  std::jthread ours([&] {
    const auto store = open();
    for (int n = 0; !done; ++n) {
      const std::string id = "cpp~" + std::to_string(n);
      error_of([&] {  // the table changes under it
        const Observation seen = take(*store, "report", id);
        if (seen.owner.id == id) note(seen.owner.token, by_us);
      });
      eventually([&] { return error_of([&] { release(*store, "report", id); }) == "none"; });
      if (n % 4 == 0) std::this_thread::sleep_for(1ms);
    }
  });
  std::jthread theirs([&] {
    Jvm other(options(), table, Jvm::Kind::kSince33);
    Admin reader(options());
    while (!done) {
      std::this_thread::sleep_for(200us);
      try {  // without the column its statement is none
        if (!other.acquire("report", "jvm")) continue;
        note(std::stoull(reader("SELECT fencing_token FROM " + table)), by_jvm);
        other.release("report", "jvm");
      } catch (const std::runtime_error&) {
      }
    }
  });
  EXPECT_TRUE(eventually([&] { return by_us > 20; }));
  EXPECT_THAT(create_mysql_table(options()), HasSubstr("ADD COLUMN fencing_token"));
  const int before = by_us;
  EXPECT_TRUE(eventually([&] { return by_us > before + 20 && by_jvm > 20; }));
  done = true;
  ours.join();
  theirs.join();
  const auto falls = std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>());
  EXPECT_EQ(falls, tokens.end()) << *falls << " and then " << falls[1];
}

// Of a row that nobody of ours takes meanwhile, too.
TEST_F(MysqlJvmTest, TheFirstTokenOfAJvmContenderAfterTheUpgradeIsAboveAllBeforeIt) {
  make_old_table();
  const auto store = open();
  Token last = 0;
  for (int i = 0; i < 5; ++i) {
    const std::string id = "a~" + std::to_string(i);
    last = take(*store, "report", id).owner.token;
    renew(*store, "report", id, last);
    release(*store, "report", id, last);
  }
  create_mysql_table(options());
  Jvm other(options(), table, Jvm::Kind::kSince33);
  EXPECT_TRUE(other.try_init("new")) << "as it always did";
  EXPECT_EQ(row("new", "fencing_token"), "0");
  ASSERT_TRUE(other.acquire("report", "jvm"));
  EXPECT_GT(std::stoull(row("report", "fencing_token")), last);
}

// Its renewals have raised the version since, with which the column of the tokens begins.
TEST_F(MysqlJvmTest, ATermOfTheOldTableGoesOnUnderItsTokenAfterTheUpgrade) {
  make_old_table();
  std::vector<Claim> terms;
  for (const char* mutex : {"a", "b", "c", "d"}) {
    const Token token = take(*open(), mutex, "x~1").owner.token;
    renew(*open(), mutex, "x~1", token);
    terms.push_back({mutex, "x~1", token, 0, 10s, 6s});
  }
  create_mysql_table(options());
  for (const std::string dialect : {"dialect=detect", "dialect=mysql"}) {
    SCOPED_TRACE(dialect);
    const auto store = open({}, dialect);
    EXPECT_EQ(renew(*store, "a", "x~1", terms[0].token).owner.token, terms[0].token);
    for (const Answer& each : store->contend(terms, soon())) {
      EXPECT_EQ(observed(each).owner.token, terms[0].token);
    }
    EXPECT_EQ(take(*store, "a", "y~1").owner.id, "x~1");
  }
  const auto store = open();
  release(*store, "a", "x~1", terms[0].token);
  EXPECT_TRUE(observe(*store, "a").is_free());
  store->release({&terms[1], 2}, soon());
  EXPECT_TRUE(observe(*store, "b").is_free() && observe(*store, "c").is_free());
  const Token seen = observe(*store, "d").owner.token;
  EXPECT_EQ(store->evict("d", "x~1", seen - 1, Eviction::kFreeNow, soon()).owner.id, "x~1")
      << "of an earlier term";
  EXPECT_TRUE(store->evict("d", "x~1", seen, Eviction::kFreeNow, soon()).is_free());
}

TEST_F(MysqlJvmTest, AConnectionThatKnowsTheOldTableNumbersNoTermAfterTheUpgrade) {
  make_old_table();
  const auto store = open({}, "connections=2");
  release(*store, "report", "a~1", take(*store, "report", "a~1").owner.token);
  create_mysql_table(options());
  const Token elsewhere = take(*open_elsewhere(), "report", "b~1").owner.token;
  admin()("UPDATE " + table + " SET transition_at = 0, owner_id = ''");
  Token token = 0;
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { token = take(*store, "report", "c~1").owner.token; }) == "none";
  }));
  EXPECT_GT(token, elsewhere);
}

TEST_F(MysqlJvmTest, WhoWaitsDuringTheUpgradeWaitsOn) {
  make_old_table();
  const auto other = open_elsewhere();
  const Token token = take(*other, "report", "x~1").owner.token;
  const Client client(open({}, "connections=2"));
  SimbaLocker locker(client, "report", steady_lease());
  std::atomic<bool> is_locked{false};
  std::string error;
  std::jthread waiter([&] {
    error = error_of([&] { locker.lock(); });
    is_locked = true;
    if (error == "none") locker.unlock();
  });
  std::this_thread::sleep_for(
      300ms);  // it has asked once, on a connection that knows the old table
  EXPECT_FALSE(is_locked);
  create_mysql_table(options());
  release(*other, "report", "x~1", token);
  EXPECT_TRUE(eventually([&] { return is_locked.load(); }));
  waiter.join();
  EXPECT_EQ(error, "none");
}

TEST_F(MysqlJvmTest, ATransactionThatStaysOpenHoldsUpNobodyForLongerThanTheUpgradeWaits) {
  make_old_table();
  const auto store = open();
  take(*store, "held", "x~1");
  auto stranger = lock_row("held");
  EXPECT_THAT(error_of([&] { create_mysql_table(options()); }),
              AllOf(StartsWith("the deadline passed"), HasSubstr("stays open"),
                    HasSubstr("INNODB_TRX"), HasSubstr(table)));
  EXPECT_TRUE(eventually([&] { return can_take(*store); })) << "beside the open transaction";
  stranger.reset();
  EXPECT_THAT(create_mysql_table(options()), HasSubstr("ALTER TABLE"));
}

TEST_F(MysqlJvmTest, TheTableIsMadeWithItsDatabaseOrOnlyPrinted) {
  MysqlOptions elsewhere = options();
  elsewhere.database = "db_" + table;
  const std::string printed = mysql_schema(elsewhere);
  EXPECT_THAT(printed, AllOf(HasSubstr("CREATE DATABASE IF NOT EXISTS `db_"),
                             HasSubstr("mutex VARBINARY(66)"), HasSubstr("ENGINE = InnoDB")));
  EXPECT_EQ(admin()("SHOW DATABASES LIKE 'db_" + table + '\''), "");
  EXPECT_EQ(create_mysql_table(elsewhere), printed);
  EXPECT_EQ(take(*open_mysql(elsewhere), "report", "a~1").owner.id, "a~1");
  admin()("DROP DATABASE db_" + table);
}

TEST_F(MysqlJvmTest, WithoutTheRightToAlterItIsSaidWhatToRun) {
  make_old_table();
  make_user();
  grant();
  EXPECT_THAT(error_of([&] { create_mysql_table(options(user)); }),
              AllOf(StartsWith("the store denied"), HasSubstr("ALTER TABLE"),
                    HasSubstr("ADD COLUMN fencing_token")));
  EXPECT_EQ(take(*open(user), "report", "a~1").owner.id, "a~1") << "the old table works";
}

}  // namespace
}  // namespace simba::mysql
