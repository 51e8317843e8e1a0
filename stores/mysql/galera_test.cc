#include <thread>

#include "stores/mysql/mysql_fixture.h"

// Three nodes that write together: what holds on such a cluster, and what does not.
namespace simba::mysql {
namespace {

using ::testing::HasSubstr;

class GaleraTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      cluster = std::make_unique<servers::GaleraCluster>();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
  }
  MysqlOptions options(std::size_t node) {
    MysqlOptions made = mysql_options(cluster->node(node).url());
    made.log = log.sink();
    return made;
  }
  std::shared_ptr<Store> open(std::size_t node) { return open_mysql(options(node)); }

  std::unique_ptr<servers::GaleraCluster> cluster;
  Lines log;
};

// One test, because a cluster takes seconds to start.
TEST_F(GaleraTest, NodesExcludeEachOtherAndGoOnWithoutOneOfThem) {
  std::vector<std::shared_ptr<Store>> stores;
  for (std::size_t i = 0; i < 3; ++i) stores.push_back(open(i));

  // A claim that another node refuses when it is committed is an error, never a second owner.
  take(*stores[0], "warm", "x~1");
  ASSERT_TRUE(eventually([&] { return observe(*stores[2], "warm").owner.id == "x~1"; }));
  std::atomic<int> inside{0}, overlaps{0}, terms{0}, refused{0};
  std::mutex guard;
  std::vector<Token> tokens;
  const LocalTime began = BootClock::now();
  const auto is_over = [&] {  // after a while, and some terms
    const nanoseconds lasted = BootClock::now() - began;
    return lasted > 3s && (terms > 5 || lasted > 60s);
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        Store& store = *stores[i % 3];
        for (int n = 0; !is_over(); ++n) {
          const std::string id = "c" + std::to_string(i) + '~' + std::to_string(n);
          error_of([&] {
            const Observation seen = take(store, "report", id);
            if (seen.owner.id != id) {
              ++refused;
              return;
            }
            if (inside.fetch_add(1) != 0) ++overlaps;
            {
              const std::lock_guard lock(guard);
              tokens.push_back(seen.owner.token);
            }
            ++terms;
            // Until another one has asked meanwhile.
            eventually([&, before = refused.load()] { return refused > before || is_over(); });
            inside.fetch_sub(1);
          });
          // Also after an error: whether the server acted is unknown.
          eventually([&] { return error_of([&] { release(store, "report", id); }) == "none"; });
        }
      });
    }
  }
  EXPECT_EQ(overlaps, 0);
  EXPECT_GT(terms, 5);
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end())) << "tokens grow across nodes";

  // A store that may go to any of them begins with the one that will die.
  MysqlOptions any = options(2);
  for (const std::size_t i : {0, 1}) any.hosts.push_back(options(i).hosts.at(0));
  const auto mobile = open_mysql(any);
  const Token kept = observed(contend(*mobile, {"mobile", "x~1", 0, 0, 120s, 60s})).owner.token;

  // A node dies: who was on another one keeps his term, the others take over.
  const Client survivor(stores[0]), other(stores[1]);
  // The others commit nothing until they miss it: the lease is longer, on a busy machine too.
  ContendOptions patient = lease(60s, 30s);
  patient.renew_at = 0.02;
  Contender owner(survivor, "held", patient);
  ASSERT_TRUE(eventually([&] { return owner.is_owner(); }));
  Contender waiter(other, "held", patient);
  cluster->node(2).kill();
  EXPECT_TRUE(
      eventually([&] { return error_of([&] { take(*stores[0], "after", "x~2"); }) == "none"; }));
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_EQ(owner.released(), 0) << "the others are a majority";
  EXPECT_TRUE(eventually([&] {
    return error_of([&] { EXPECT_EQ(renew(*mobile, "mobile", "x~1", kept).owner.token, kept); }) ==
           "none";
  })) << "it goes to another node";
  EXPECT_EQ(waiter.acquired(), 0);
  owner.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_owner(); })) << "from one node to another";
  EXPECT_GE(log.count("a node of a Galera cluster"), 1U);

  // A node without a majority serves nobody, and says why; it goes on when the others are back.
  cluster->node(0).kill();
  std::string error;
  EXPECT_TRUE(eventually(
      [&] {
        error = error_of([&] { take(*stores[1], "alone", "x~3"); });
        return error.find("no quorum") != error.npos;
      },
      60s))
      << error;
  cluster->rejoin(0);
  EXPECT_TRUE(eventually(
      [&] {
        error = error_of([&] { take(*stores[1], "alone", "x~4"); });
        return error == "none";
      },
      60s))
      << error;
}

}  // namespace
}  // namespace simba::mysql
