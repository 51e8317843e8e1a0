#include "stores/zookeeper/zookeeper_fixture.h"

// What keeps the server so busy that nothing runs beside it.
namespace simba::zookeeper {
namespace {

TEST_F(ZookeeperTest, OneSessionServesThousandsOfMutexes) {
  constexpr std::size_t kMutexes = 2'000;
  const auto store = connect();
  std::vector<std::string> names;
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < kMutexes; ++i) names.push_back(m + "." + std::to_string(10'000 + i));
  for (const std::string& name : names) claims.push_back({name, "a~1", 0, 0, 60s, 30s});
  for (int round = 0; round < 3; ++round) {
    const Answers answers = store->contend(claims, soon(20s));
    for (std::size_t i = 0; i < kMutexes; ++i) {
      const auto* seen = std::get_if<Observation>(&answers[i]);
      ASSERT_TRUE(seen && owns(*seen, "a~1")) << i;
      claims[i].token = seen->owner.token;
    }
  }
  EXPECT_EQ(store->list(m, {}, kMutexes + 1, soon(20s)).size(), kMutexes);
  store->release(claims, soon(20s));
}

}  // namespace
}  // namespace simba::zookeeper
