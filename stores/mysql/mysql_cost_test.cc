#include <algorithm>
#include <map>
#include <string>
#include <thread>

#include "stores/mysql/mysql_fixture.h"

// How often a server is asked, by its own count: on a server where nobody else is.
namespace simba::mysql {
namespace {

class MysqlCostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      server_ = std::make_unique<servers::MariadbServer>();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    server_->start();
    admin_ = std::make_unique<Admin>(server_->url());
  }
  std::shared_ptr<Store> open() const { return open_mysql(mysql_options(server_->url())); }
  // Questions that clients asked since the last time, without this one. Preparing a statement is
  // not counted, each execution is.
  int asked() {
    const std::string count = (*admin_)("SHOW GLOBAL STATUS LIKE 'Questions'");
    const int now = std::stoi(count.substr(count.find('|') + 1));
    return now - std::exchange(before_, now) - 1;
  }

 private:
  std::unique_ptr<servers::MariadbServer> server_;
  std::unique_ptr<Admin> admin_;
  int before_ = 0;
};

// A round is gone through several times, and the least of each step counts: connections are opened,
// and statements prepared, when they are needed first, which is in the background and at any time.
TEST_F(MysqlCostTest, ATakeARenewalAndAReleaseAreOneRoundTripEach) {
  const auto store = open(), other = open();
  std::map<std::string, int> least;
  const auto cost = [&](const std::string& step) {
    const int now = asked();
    const auto [at, is_first] = least.try_emplace(step, now);
    if (!is_first) at->second = std::min(at->second, now);
  };
  for (int i = 0; i < 10; ++i) {
    const std::string mutex = "report" + std::to_string(i);
    take(*store, mutex, "a~1");
    release(*store, mutex, "a~1");
    asked();
    const Token token = take(*store, mutex, "a~1").owner.token;
    cost("a take of what this process has released");
    EXPECT_EQ(renew(*store, mutex, "a~1", token).owner.token, token);
    cost("a renewal");
    EXPECT_EQ(take(*other, mutex, "b~1").owner.id, "a~1");
    cost("a take that is refused");
    release(*store, mutex, "a~1");
    cost("a release");
    EXPECT_EQ(take(*other, mutex, "b~1").owner.id, "b~1");
    cost("a take of what another has released");
    EXPECT_EQ(take(*store, mutex, "a~1").owner.id, "b~1");
    cost("a take of what was free when this process had it last");
    EXPECT_EQ(renew(*store, mutex, "a~1", token).owner.id, "b~1");
    cost("a renewal of a term that is over");
  }
  // docs/mysql.md names the exceptions. MySQL counts each statement of a text: of a take three.
  const int taking = servers::tests_mysql() ? 3 : 1;
  EXPECT_EQ(least, (std::map<std::string, int>{
                       {"a take of what this process has released", 1},
                       {"a renewal", 1},
                       {"a take that is refused", taking},
                       {"a release", 1},
                       {"a take of what another has released", taking},
                       {"a take of what was free when this process had it last", 1 + taking},
                       {"a renewal of a term that is over", 2},
                   }));
}

TEST_F(MysqlCostTest, AHundredWhoWaitAskThreeTimesASecondAtMost) {
  const auto owner = open();
  observed(contend(*owner, {"held", "owner~1", 0, 0, 60s, 30s}));
  const Client client(open());
  std::vector<std::unique_ptr<Contender>> waiters;
  for (int i = 0; i < 100; ++i) {
    waiters.push_back(std::make_unique<Contender>(client, "held", lease(60s, 30s)));
  }
  // They have begun once a second goes by with hardly a question.
  ASSERT_TRUE(eventually([&] {
    asked();
    std::this_thread::sleep_for(1s);
    return asked() <= 3;
  }));
  const LocalTime began = BootClock::now();
  std::this_thread::sleep_for(4s);
  const int questions = asked();
  EXPECT_LE(questions, 3 * ((BootClock::now() - began) / 1s));
  for (const auto& each : waiters) EXPECT_EQ(each->acquired(), 0);
}

}  // namespace
}  // namespace simba::mysql
