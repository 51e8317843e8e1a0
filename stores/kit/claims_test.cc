#include "stores/kit/claims.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace simba::kit {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

const StoreTraits kTraits{"mine", 66, 128, false};

bool fits(const Claim& claim) {
  try {
    check_claim(kTraits, claim);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    EXPECT_EQ(std::string(error.what()).rfind("mine: ", 0), 0U);
    return false;
  }
}

TEST(ClaimsTest, AGoodOneFits) {
  EXPECT_TRUE(fits({"report", "a~1", 0, 0, 10s, 6s}));
  EXPECT_TRUE(fits({std::string(66, 'n'), std::string(128, 'w'), kMaxToken - 1, 0, 1ms, 0ms}));
  EXPECT_TRUE(fits({"\xf0\x9f\x94\x92\xe2\x82\xac\xc3\xa9", "a~1", 0, 0, 10s, 6s}));
}

TEST(ClaimsTest, WhatARowCannotHoldDoesNot) {
  for (const std::string& bad : {""s, std::string(67, 'n'), "a\0b"s, "\xff"s, "\xc3"s, "\xc0\x80"s,
                                 "\xed\xa0\x80"s, "\xe0\x80\x80"s, "\xf0\x80\x80\x80"s,
                                 "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "\xe2\x82"s}) {
    EXPECT_FALSE(fits({bad, "a~1", 0, 0, 10s, 6s})) << bad.size();
  }
  EXPECT_FALSE(fits({"report", "", 0, 0, 10s, 6s}));
  EXPECT_FALSE(fits({"report", std::string(129, 'w'), 0, 0, 10s, 6s}));
  EXPECT_FALSE(fits({"report", "a~1", kMaxToken, 0, 10s, 6s}));
  EXPECT_FALSE(fits({"report", "a~1", 0, kMaxToken, 10s, 6s}));
  EXPECT_FALSE(fits({"report", "a~1", 0, 0, 0s, 6s}));
  EXPECT_FALSE(fits({"report", "a~1", 0, 0, 10s, -1ms}));
  EXPECT_FALSE(fits({"report", "a~1", 0, 0, milliseconds::max(), 6s}));
}

TEST(ClaimsTest, ARefusalIsOfTheTimeWhenTheLeaseOfAnotherStillRan) {
  const Claim take{"report", "a~1", 0, 0, 10s, 6s};
  const auto after = [&](const char* owner) {
    Observation seen{{owner, std::nullopt, std::nullopt, StoreTime{100ms}, 7}, StoreTime{103ms}};
    set_time_of_refusal(seen, take);
    return seen.now;
  };
  EXPECT_EQ(after("b~1"), StoreTime{100ms});
  EXPECT_EQ(after("a~1"), StoreTime{103ms}) << "its own lease is over, and stays over";
  EXPECT_EQ(after(""), StoreTime{103ms}) << "released: nobody's lease ran";
}

TEST(ClaimsTest, APageBeginsAtThePrefixOrBehindAName) {
  EXPECT_EQ(first_of_page("", ""), "");
  EXPECT_EQ(first_of_page("b", ""), "b");
  EXPECT_EQ(first_of_page("b", "a"), "b");
  const std::string behind = first_of_page("b", "b");
  EXPECT_GT(behind, "b");
  EXPECT_LT(behind, "b ") << "no name begins with less than a blank";
  EXPECT_GT(first_of_page("b", "\xc3\xa4"), "\xc3\xa4");
}

}  // namespace
}  // namespace simba::kit
