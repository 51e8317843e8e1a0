#include "stores/zookeeper/latch.h"

#include <gtest/gtest.h>

#include <set>

namespace simba::zookeeper {
namespace {

using Names = std::vector<std::string>;

TEST(Latch, HasTheNameCuratorGivesIt) {
  const std::string stem = latch_stem("host~0123456789abc");
  ASSERT_EQ(stem.size(), 3 + 36 + 1 + 6);
  EXPECT_TRUE(stem.starts_with("_c_"));
  EXPECT_TRUE(stem.ends_with("-latch-"));
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) EXPECT_EQ(stem[3 + dash], '-');
  EXPECT_EQ(stem.substr(3, 36).find_first_not_of("0123456789abcdef-"), std::string::npos);
  EXPECT_TRUE(stem.starts_with(latch_prefix("host~0123456789abc")));
}

TEST(Latch, IsTheSameForAWireIdAndAnotherForEachOther) {
  std::set<std::string> all;
  for (int i = 0; i < 10'000; ++i) all.insert(latch_prefix("c~" + std::to_string(i)));
  EXPECT_EQ(all.size(), 10'000U);
  EXPECT_EQ(latch_prefix("c~1"), latch_prefix("c~1"));
}

TEST(Latch, NumbersAreReadFromTheEnd) {
  EXPECT_EQ(latch_number("_c_1-latch-0000000012"), 12);
  EXPECT_EQ(latch_number("_c_latch-0000000001-latch-0000000002"), 2);
  EXPECT_EQ(latch_number("latch-2147483647"), 2'147'483'647);
  EXPECT_EQ(latch_number("latch--2147483648"), -2'147'483'648);
  for (const char* other : {"", "lock-0000000001", "latch-", "latch-12", "latch-000000000x",
                            "latch-0000000001x", "latch-99999999999999999999", "0000000001"}) {
    EXPECT_EQ(latch_number(other), std::nullopt) << other;
  }
}

TEST(Latch, TheLowestNumberLeadsWhateverTheUuid) {
  EXPECT_EQ(latch_order(Names{"_c_a-latch-0000000010", "_c_z-latch-0000000002", "foreign",
                              "_c_m-latch-0000000003"}),
            (Names{"_c_z-latch-0000000002", "_c_m-latch-0000000003", "_c_a-latch-0000000010"}));
  EXPECT_EQ(latch_order(Names{}), Names{});
}

TEST(Latch, NamesThatZooKeeperRefusesAreRefusedBefore) {
  for (const char* good :
       {"job", "a b", "..a", "{x}", "n\xc3\xa4me", "\xe2\x82\xac", "%2F", "zookeeper"}) {
    EXPECT_EQ(why_no_node_name(good), "") << good;
  }
  for (const char* bad : {"a/b", "/", ".", "..", "a\x1f", "\x7f", "\xc2\x85", "\xf0\x9f\x94\x92",
                          "\xee\x80\x80", "\xef\xbf\xbf"}) {
    EXPECT_NE(why_no_node_name(bad), "") << bad;
  }
}

}  // namespace
}  // namespace simba::zookeeper
