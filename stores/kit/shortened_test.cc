#include "stores/kit/shortened.h"

#include <gtest/gtest.h>

namespace simba::kit {
namespace {

TEST(ShortenedTest, WhatIsShortStaysAsItIs) {
  EXPECT_EQ(shortened(""), "");
  EXPECT_EQ(shortened("no\n"), "no\n");
  EXPECT_EQ(shortened(std::string(500, 'x')), std::string(500, 'x'));
}

TEST(ShortenedTest, WhatIsLongIsCutBetweenCharacters) {
  EXPECT_EQ(shortened(std::string(1'000'000, 'x')), std::string(500, 'x') + "...");
  EXPECT_EQ(shortened(std::string(499, 'x') + "\xc3\xa9"), std::string(499, 'x') + "...");
  EXPECT_EQ(shortened(std::string(498, 'x') + "\xc3\xa9z"), std::string(498, 'x') + "\xc3\xa9...");
  EXPECT_EQ(shortened(std::string(600, '\x80')), "...") << "no character begins anywhere";
}

}  // namespace
}  // namespace simba::kit
