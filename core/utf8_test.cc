#include "core/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace simba::core {
namespace {

using namespace std::string_literals;

TEST(Utf8Test, AcceptsEveryLengthAtItsLimits) {
  for (const std::string& text :
       {""s, "a"s, "\x7f"s, "\u0080"s, "\u07ff"s, "\u0800"s, "\xed\x9f\xbf"s, "\ue000"s, "\uffff"s,
        "\U00010000"s, "\U0010ffff"s, "Gr\u00fc\u00dfe \U0001f981"s, "\0"s}) {
    EXPECT_TRUE(is_valid_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST(Utf8Test, RefusesWhatIsCutOffOrOutOfPlace) {
  for (const std::string& text :
       {"\x80"s, "a\xbf"s, "\xc3"s, "\xe2\x82"s, "\xf0\x9f\xa6"s, "\xc3("s, "\xe2(\xa1"s,
        "\xe2\x82("s, "\xf0\x9f\xa6("s, "\xff"s, "\xfe"s, "\xf8\x88\x80\x80\x80"s}) {
    EXPECT_FALSE(is_valid_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST(Utf8Test, RefusesASecondSpellingOfTheSameCharacter) {
  for (const std::string& text : {"\xc0\x80"s, "\xc1\xbf"s, "\xe0\x80\x80"s, "\xe0\x9f\xbf"s,
                                  "\xf0\x80\x80\x80"s, "\xf0\x8f\xbf\xbf"s}) {
    EXPECT_FALSE(is_valid_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST(Utf8Test, RefusesSurrogatesAndWhatIsBeyondUnicode) {
  for (const std::string& text :
       {"\xed\xa0\x80"s, "\xed\xbf\xbf"s, "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s}) {
    EXPECT_FALSE(is_valid_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST(Utf8Test, FindsEveryControlCharacter) {
  for (int c = 0; c < 0x20; ++c) EXPECT_TRUE(has_control_characters("a"s + static_cast<char>(c)));
  EXPECT_TRUE(has_control_characters("\x7f"));
  EXPECT_TRUE(has_control_characters("a\u0080"));
  EXPECT_TRUE(has_control_characters("\u009b"));
  EXPECT_TRUE(has_control_characters("\u009fz"));
}

TEST(Utf8Test, DoesNotMistakeOtherCharactersForControls) {
  for (const char* text :
       {"", " ", "~", "\u00a0", "\u00e9", "\u0420\u0443\u0441", "\U0001f981", "\u0180\u0191"}) {
    EXPECT_FALSE(has_control_characters(text)) << text;
  }
}

}  // namespace
}  // namespace simba::core
