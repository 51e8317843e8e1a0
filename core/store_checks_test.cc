#include <gtest/gtest.h>

#include <string>

#include "core/utf8.h"
#include "simba/contender_id.h"
#include "simba/error.h"
#include "simba/memory.h"
#include "testing/faulty_store.h"

namespace simba {
namespace {

class StoreChecksTest : public ::testing::Test {
 protected:
  StoreChecksTest() { store.set_traits({"narrow", 66, 32, false}); }

  template <typename Check>
  static std::string refusal_of(Check check) {
    try {
      check();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kMisconfigured);
      return error.what();
    }
    return {};
  }
  std::string mutex(std::string_view name) const {
    return refusal_of([&] { store.check_mutex(name); });
  }
  std::string label(std::string_view name) const {
    return refusal_of([&] { store.check_label(name); });
  }

  testing::FaultyStore store{make_memory()};
};

TEST_F(StoreChecksTest, AcceptsOrdinaryNames) {
  for (const char* name : {"order-settlement", "a", "a b", "job/7", "Gr\u00fc\u00dfe", "\U0001f981",
                           "..", "'; drop table--"}) {
    EXPECT_EQ(mutex(name), "") << name;
  }
}

TEST_F(StoreChecksTest, RefusesBlankNames) {
  for (const char* name : {"", " ", "   ", "\t", " \n "}) {
    EXPECT_NE(mutex(name).find("blank"), std::string::npos);
    EXPECT_NE(label(name).find("blank"), std::string::npos);
  }
}

TEST_F(StoreChecksTest, TheLimitOfAMutexIsInBytesAndNamed) {
  EXPECT_EQ(mutex(std::string(66, 'x')), "");
  const std::string text = mutex(std::string(67, 'x'));
  EXPECT_NE(text.find("67"), text.npos);
  EXPECT_NE(text.find("66"), text.npos);
  std::string wide;
  for (int i = 0; i < 34; ++i) wide += "\u00e9";
  EXPECT_NE(mutex(wide), "");  // 34 characters, 68 bytes
}

TEST_F(StoreChecksTest, ALabelLeavesRoomForWhatMakesAWireIdOfIt) {
  EXPECT_EQ(label(std::string(18, 'x')), "");
  const std::string text = label(std::string(19, 'x'));
  EXPECT_NE(text.find("19"), text.npos);
  EXPECT_NE(text.find("18"), text.npos);
}

TEST_F(StoreChecksTest, AUuidNeedsNoRoom) {
  EXPECT_EQ(label(ContenderIdGenerator::uuid().generate()), "");
  EXPECT_NE(label(std::string(32, 'x')), "");
}

TEST_F(StoreChecksTest, TheGeneratedLabelsFit) {
  EXPECT_EQ(label(ContenderIdGenerator::host().generate()), "");
}

TEST_F(StoreChecksTest, RefusesControlCharacters) {
  for (const char* name : {"a\nb", "a\x01", "\x7f", "a\u0085"}) {
    EXPECT_NE(mutex(name).find("control"), std::string::npos) << name;
    EXPECT_NE(label(name).find("control"), std::string::npos) << name;
  }
  EXPECT_NE(mutex(std::string_view("a\0b", 3)).find("control"), std::string::npos);
}

TEST_F(StoreChecksTest, RefusesWhatIsNotUtf8) {
  for (const char* name : {"\xff", "a\xe9", "\xed\xa0\x80"}) {
    EXPECT_NE(mutex(name).find("UTF-8"), std::string::npos);
    EXPECT_NE(label(name).find("UTF-8"), std::string::npos);
  }
}

TEST_F(StoreChecksTest, ARefusalRepeatsNothingATerminalWouldObey) {
  for (const std::string& name :
       {std::string("a\x1b[2Jb"), std::string("a\u009b2Jb"), std::string("a\xff\xfe"),
        std::string(79, 'x') + "\U0001f981" + std::string(20, 'x')}) {
    const std::string text = mutex(name);
    ASSERT_NE(text, "");
    EXPECT_FALSE(core::has_control_characters(text)) << text;
    EXPECT_TRUE(core::is_valid_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST_F(StoreChecksTest, NamesThatDifferOnlyByCaseOrTrailingBlanksAreDifferentMutexes) {
  const Claim first{"job", "a~1", 0, 0, milliseconds{10000}, milliseconds{6000}};
  store.contend({&first, 1}, {});
  for (const char* name : {"JOB", "Job", "job ", " job"}) {
    const Claim other{name, "b~1", 0, 0, milliseconds{10000}, milliseconds{6000}};
    const Answers answers = store.contend({&other, 1}, {});
    EXPECT_EQ(std::get<Observation>(answers.at(0)).owner.id, "b~1") << name;
  }
}

}  // namespace
}  // namespace simba
