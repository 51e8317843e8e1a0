#include "cli/output.h"

#include <gtest/gtest.h>

#include "cli/owner_view.h"

namespace simba::cli {
namespace {

TEST(OutputTest, NothingInANameReachesTheTerminalAsACommand) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f\r\n"), "a?[2Jb???");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2Jb"),
            "a?2Jb")
      << "U+009B is a command too";
  EXPECT_EQ(printable("caf\xc3\xa9 \xe4\xba\x8b\xc2\xa0"), "caf\xc3\xa9 \xe4\xba\x8b\xc2\xa0");
  EXPECT_EQ(printable("\xc2"), "?");
  EXPECT_EQ(printable("\xc2\xc2L\x9b"), "??L?")
      << "half a character is none, and half of U+009B too";
}

// Not by a line of the log of a store from outside either.
TEST(OutputTest, WhatIsSaidIsOneLine) {
  ::testing::internal::CaptureStderr();
  say("no\x1b]0;x\a\r\nforged\x9b");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "simba: no?]0;x???forged?\n");
}

TEST(OutputTest, ALineIsCutBetweenCharacters) {
  EXPECT_EQ(cut("abc", 5), "abc");
  EXPECT_EQ(cut("abc", 2), "ab");
  EXPECT_EQ(cut("n\u00e4chtlich", 2), "n\u00e4");
  EXPECT_EQ(cut("n\u00e4chtlich", 0), "");
}

TEST(OutputTest, TimesOfAStoreThatMakeNoSenseAreShownAsLongOnes) {
  Observation seen;
  seen.owner.id = "a~1";
  seen.owner.acquired_at = StoreTime::min();
  seen.owner.transition_at = StoreTime::max();
  seen.now = StoreTime::max() - milliseconds{1};
  const OwnerView view("m", seen);
  EXPECT_EQ(view.lease_left, milliseconds{1});
  EXPECT_EQ(view.held_for, std::chrono::hours{24 * 365});
}

}  // namespace
}  // namespace simba::cli
