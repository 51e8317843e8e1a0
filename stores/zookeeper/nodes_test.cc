#include "stores/zookeeper/nodes.h"

#include <gtest/gtest.h>

#include <limits>

#include "stores/zookeeper/latch.h"

namespace simba::zookeeper {
namespace {

using Names = std::vector<std::string>;

TEST(ZookeeperNodes, AListThatLacksANameIsNoList) {
  std::string a = "a", b = "b";
  char* both[] = {a.data(), b.data()};
  char* one[] = {a.data(), nullptr};
  const String_vector whole{2, both}, lacking{2, one}, negative{-1, both}, without{2, nullptr},
      empty{0, nullptr};
  EXPECT_EQ(read_names(&whole), (Names{"a", "b"}));
  EXPECT_EQ(read_names(&empty), Names{});
  for (const String_vector* each : {&lacking, &negative, &without}) {
    EXPECT_EQ(read_names(each), std::nullopt);
  }
  EXPECT_EQ(read_names(nullptr), std::nullopt);
}

TEST(ZookeeperNodes, OfWhatANodeSaysAKilobyteIsKept) {
  const auto kept = [](const std::string& said) {
    return read_data(said.data(), static_cast<int>(said.size()));
  };
  EXPECT_EQ(kept(std::string(1'024, 'x')), std::string(1'024, 'x'));
  EXPECT_EQ(kept(std::string(1'000'000, 'x')), std::string(1'024, 'x'));
  EXPECT_EQ(kept(std::string(1'023, 'x') + "\xC3\xA9" + "and more"), std::string(1'023, 'x'));
  EXPECT_EQ(kept(std::string(2'000, '\x80')), "") << "this is no text";
  EXPECT_EQ(read_data(nullptr, 3), "");
  EXPECT_EQ(read_data("abc", -1), "");
}

TEST(ZookeeperNodes, WhoSaysNothingIsCalledByTheNameOfItsNode) {
  EXPECT_EQ(read_id("_c_uuid-latch-0000000001", "me"), "me");
  EXPECT_EQ(read_id("_c_uuid-latch-0000000001", ""), "_c_uuid-latch-0000000001");
}

TEST(ZookeeperNodes, ATokenIsATransactionOfTheServers) {
  Stat stat{};
  for (const std::int64_t none :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    stat.czxid = none;
    EXPECT_EQ(read_token(stat), std::nullopt) << none;
  }
  stat.czxid = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(read_token(stat), Token{9'223'372'036'854'775'807U});
}

TEST(ZookeeperNodes, WhatWasMadeForAWireIdHasItsName) {
  const std::string name = latch_stem("me~1") + "0000000007";
  EXPECT_EQ(read_made("/simba/job/" + name, "me~1"), name);
  for (const std::string& other :
       {std::string(), std::string("/"), "/simba/job/" + latch_stem("you~1") + "0000000007",
        "/simba/job/" + latch_stem("me~1"), "/simba/job/" + name + "x", name + "/more"}) {
    EXPECT_EQ(read_made(other, "me~1"), std::nullopt) << other;
  }
}

TEST(ZookeeperNodes, AnEventIsOfANodeOfAMutex) {
  const auto changed = read_changed("/simba/job/node", "/simba");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->mutex, "job");
  EXPECT_EQ(changed->name, "node");
  for (const char* other : {"", "/", "/simba", "/simba/job", "/simbajob/x", "/other/job/node"}) {
    EXPECT_FALSE(read_changed(other, "/simba")) << other;
  }
}

}  // namespace
}  // namespace simba::zookeeper
