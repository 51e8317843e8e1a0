#include <gmock/gmock.h>
#include <poll.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "stores/zookeeper/fault_fixture.h"

// How a session is kept and proven, on servers of our own.
namespace simba::zookeeper {
namespace {

class SessionTest : public FaultTest {
 protected:
  // The number of the newest transaction: each adds one, those that failed too.
  std::int64_t transactions() const {
    const std::string answer = server->ask("srvr");
    const std::size_t at = answer.find("Zxid: 0x");
    return at == answer.npos ? -1 : std::stoll(answer.substr(at + 8), nullptr, 16);
  }
  static std::vector<Observation> contend(Store& store, const std::vector<Claim>& claims) {
    std::vector<Observation> all;
    for (const Answer& answer : store.contend(claims, soon())) {
      if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
      all.push_back(std::get<Observation>(answer));
    }
    return all;
  }
  // The last word on a setting counts.
  void set_on_restart(const std::string& line) {
    server->stop();
    std::ofstream(server->data().parent_path() / "zoo.cfg", std::ios::app) << line << '\n';
    server->start();
  }
  // Of a core, by this process over that span.
  static double cpu_share(std::chrono::seconds span) {
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(span);
    const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    return used / static_cast<double>(span.count());
  }
  static constexpr double kAtRest = 0.25;  // a thread that does not wait takes a whole one
};

TEST_F(SessionTest, ManyTermsAreRenewedByAFewTransactionsThatChangeNothing) {
  constexpr std::size_t kTerms = 250, kInOne = 100;
  start();
  const auto store = open_alone(options(60s));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kTerms; ++i) names.push_back(m + '.' + std::to_string(1000 + i));
  std::vector<Claim> claims;
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  const std::vector<Observation> taken = contend(*store, claims);
  for (std::size_t i = 0; i < kTerms; ++i) claims[i].token = taken[i].owner.token;
  const std::string node = path(names[0]) + '/' + raw().children(path(names[0])).at(0);
  const std::int64_t before = transactions();
  ASSERT_GT(before, 0);
  for (const Observation& renewed : contend(*store, claims)) EXPECT_TRUE(owns(renewed, "a~1"));
  // One of the session's own may come in between.
  EXPECT_LE(transactions() - before, std::int64_t{(kTerms + kInOne - 1) / kInOne + 1});
  EXPECT_EQ(raw().stat(node).mzxid, raw().stat(node).czxid) << "a node was written";
  EXPECT_EQ(raw().stat(path(names[0])).version, 0) << "a container was written";
}

// What renews proves the session too, so nothing else does beside it.
TEST_F(SessionTest, WhoRenewsOftenSendsNoOtherTransaction) {
  start();
  const auto store = open_alone(options(3s));  // a proof every half second
  const Token token = take(*store, m, "a~1").owner.token;
  std::int64_t renewals = 0, pauses = 0;
  const std::int64_t before = transactions();
  ASSERT_GT(before, 0);
  const LocalTime began = BootClock::now();
  for (LocalTime last = began; BootClock::now() < began + 2500ms; ++renewals) {
    ASSERT_TRUE(owns(renew(*store, m, "a~1", token), "a~1"));
    const LocalTime now = BootClock::now();
    if (now - last > 300ms) ++pauses;  // of a busy machine
    last = now;
    ::poll(nullptr, 0, 20);
  }
  EXPECT_LE(transactions() - before, renewals + 2 * pauses + 1);
}

// A waiter has no term that it renews: what it knows of its session is what the session sends.
TEST_F(SessionTest, WhereTheRootCannotBeReadTheSessionIsProvenByANodeOfItsOwn) {
  start();
  const auto owner = connect_straight(60s), store = open_alone(options(6s));
  const Token token = take(*owner, m, "a~1").owner.token;
  ASSERT_EQ(raw().allow("/", ZOO_PERM_ADMIN), ZOK);
  const auto watch = store->watch(m, "b~1", [] {});
  EXPECT_EQ(take(*store, m, "b~1").owner.id, "a~1");
  // Of what the joining proved nothing is left after 4.8 s.
  std::this_thread::sleep_for(6s);
  const Claim claim{m, "a~1", token, 0, 60s, 30s};
  ASSERT_TRUE(std::holds_alternative<Observation>(owner->release({&claim, 1}, soon()).at(0)));
  EXPECT_TRUE(owns(take(*store, m, "b~1"), "b~1")) << "at the first time of asking";
}

TEST_F(SessionTest, AnOutageInWhichATermEndsIsSatOutAtRest) {
  start();
  put_relay();
  const auto store = open_alone(options(30s));
  ASSERT_TRUE(owns(take(*store, m, "a~1", 200ms, 100ms), "a~1"));
  relay->cut();
  std::this_thread::sleep_for(400ms);
  EXPECT_LT(cpu_share(2s), kAtRest);
  relay->mend();
  EXPECT_TRUE(eventually([&] { return queue().empty(); })) << "it is made up for";
}

TEST_F(SessionTest, ServersThatGrantTooLittleAreNotAskedWithoutAPause) {
  servers::ZooKeeperSettings settings;
  settings.config["maxSessionTimeout"] = "1000";
  start(settings);
  const auto store = open_alone(options(8s, 1s));
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1"); }),
              ::testing::HasSubstr("grant a session timeout of 1000 ms"));
  std::this_thread::sleep_for(3s);  // a session that comes later than that is given up
  EXPECT_LT(cpu_share(2s), kAtRest);
}

// Asked again by the session that got too little, they would not grant more than that.
TEST_F(SessionTest, ServersThatGrantEnoughAgainAreFoundOut) {
  servers::ZooKeeperSettings settings;
  settings.config["maxSessionTimeout"] = "1000";
  settings.config["minSessionTimeout"] = "400";
  start(settings);
  const auto store = open_alone(options(8s, 1s));
  EXPECT_THAT(error_of([&] { take(*store, m, "a~1"); }),
              ::testing::HasSubstr("it must be at least"));
  set_on_restart("maxSessionTimeout=60000");
  EXPECT_TRUE(eventually([&] { return error_of([&] { take(*store, m, "a~1"); }).empty(); }));
}

// A restart may bring another maxSessionTimeout, and so may the next server: the session goes on,
// and ends sooner.
TEST_F(SessionTest, ALeaseIsNeverLongerThanTheServerOfTheHourLetsTheSessionLive) {
  start();
  put_relay();
  const auto store = open_alone(options(40s));
  const Token token = take(*store, m, "a~1").owner.token;
  set_on_restart("maxSessionTimeout=8000");
  const auto heir = connect_straight();
  EXPECT_EQ(take(*heir, m, "b~1").owner.id, "a~1") << "the session has survived";
  LocalTime believed{};
  ASSERT_TRUE(eventually([&] {
    const LocalTime sent = BootClock::now();
    return error_of([&] {
             const Observation seen = renew(*store, m, "a~1", token);
             if (owns(seen, "a~1")) believed = sent + (seen.owner.transition_at - seen.now);
           })
        .empty();
  }));
  relay->stall();
  ASSERT_TRUE(eventually([&] { return owns(take(*heir, m, "b~1"), "b~1"); }));
  EXPECT_LT(believed, BootClock::now()) << "two owners";
}

TEST_F(SessionTest, AServerThatRefusesTheCredentialsIsNotAskedWithoutAPause) {
  servers::ZooKeeperSettings settings;
  settings.java = {"-Dzookeeper.DigestAuthenticationProvider.enabled=false"};
  start(settings);
  ZookeeperOptions refused = options(6s);
  refused.user = "me";
  refused.password = "secret";
  const auto store = open_alone(refused);
  ASSERT_TRUE(eventually([&] {
    return error_of([&] { take(*store, m, "a~1"); }).find("refused the credentials") !=
           std::string::npos;
  }));
  const std::int64_t before = transactions();
  ASSERT_GT(before, 0);
  std::this_thread::sleep_for(2s);
  EXPECT_LT(transactions() - before, 40) << "each session is one when it begins, one when it ends";
}

// The request is lost, not the answer: nothing stands there, and nothing is remembered of it.
TEST_F(SessionTest, ATakeThatNeverArrivedIsForgottenWithItsRelease) {
  start();
  put_relay();
  const auto connection = std::make_shared<Connection>(options(30s));
  ZookeeperStore store(connection);
  make_container(store);
  Places& places = connection->session()->places();
  relay->stall();
  std::this_thread::sleep_for(10ms);
  const Claim claim{m, "a~1", 0, 0, 60s, 30s};
  static_cast<void>(store.contend({&claim, 1}, soon(500ms)));
  relay->cut();
  ASSERT_TRUE(eventually([&] { return !connection->session()->is_connected(); }));
  relay->mend();
  ASSERT_TRUE(eventually([&] { return error_of([&] { release(store, m, "a~1"); }).empty(); }));
  EXPECT_TRUE(queue().empty());
  EXPECT_EQ(places.begin_join(m, "a~1", soon()), Places::Doubt::kNone);
}

}  // namespace
}  // namespace simba::zookeeper
