#include "simba/contender_id.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/random.h"

namespace simba {
namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

TEST(ContenderIdTest, AHostIdIsCounterPidAndHost) {
  const std::string id = ContenderIdGenerator::host().generate();
  std::smatch parts;
  ASSERT_TRUE(std::regex_match(id, parts, std::regex{R"((\d+):(\d+)@(.+))"})) << id;
  EXPECT_EQ(parts[2], std::to_string(getpid()));
}

TEST(ContenderIdTest, AHostIdFitsWhereThirtyTwoCharactersAreTheLimit) {
  for (int i = 0; i < 2000; ++i) {
    const std::string id = ContenderIdGenerator::host().generate();
    EXPECT_LE(id.size(), kMaxPortableLabel) << id;
    EXPECT_LE(make_wire_id(id, kAllOnes, kAllOnes).size(), 32U) << id;
  }
}

TEST(ContenderIdTest, TheCounterGrowsWithEachContender) {
  const auto counter = [] { return std::stoull(ContenderIdGenerator::host().generate()); };
  const auto first = counter();
  EXPECT_EQ(counter(), first + 1);
}

TEST(ContenderIdTest, HostIdsFromManyThreadsAreAllDifferent) {
  std::mutex guard;
  std::set<std::string> ids;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::string id = ContenderIdGenerator::host().generate();
        const std::lock_guard lock(guard);
        ids.insert(std::move(id));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(ids.size(), 2000U);
}

TEST(ContenderIdTest, AUuidIsThirtyTwoLowerCaseHexDigitsOfVersionFour) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ContenderIdGenerator::uuid().generate();
    ASSERT_TRUE(std::regex_match(id, std::regex{"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}"}))
        << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000U);
}

TEST(ContenderIdTest, ACustomGeneratorSaysWhatItIsTold) {
  int calls = 0;
  const auto ids =
      ContenderIdGenerator::custom([&] { return "worker-" + std::to_string(++calls); });
  EXPECT_EQ(ids->generate(), "worker-1");
  EXPECT_EQ(ids->generate(), "worker-2");
}

TEST(WireIdTest, IsTheLabelATildeAndThirteenCharacters) {
  EXPECT_EQ(make_wire_id("worker", 0, 0), "worker~0000000000000");
  EXPECT_EQ(make_wire_id("worker", kAllOnes, 0), "worker~fvvvvvvvvvvvv");
  EXPECT_EQ(make_wire_id("worker", 1, 0), "worker~0000000000001");
  EXPECT_EQ(make_wire_id("worker", 32, 0), "worker~0000000000010");
}

TEST(WireIdTest, KeepsAllSixtyFourRandomBits) {
  std::set<std::string> ids;
  for (int bit = 0; bit < 64; ++bit) ids.insert(make_wire_id("w", std::uint64_t{1} << bit, 0));
  EXPECT_EQ(ids.size(), 64U);
}

TEST(WireIdTest, IsNewForEachAttemptOfOneLabel) {
  std::set<std::string> ids;
  for (int i = 0; i < 10'000; ++i)
    ids.insert(make_wire_id("worker", core::random64(), core::random64()));
  EXPECT_EQ(ids.size(), 10'000U);
}

TEST(WireIdTest, OfAUuidIsAnotherUuid) {
  const std::string label = ContenderIdGenerator::uuid().generate();
  ASSERT_TRUE(is_uuid_label(label));
  const std::string first = make_wire_id(label, 1, 2);
  const std::string second = make_wire_id(label, 1, 3);
  EXPECT_TRUE(is_uuid_label(first));
  EXPECT_NE(first, label);
  EXPECT_NE(first, second);
  EXPECT_NE(make_wire_id(label, 2, 2), first);
}

TEST(WireIdTest, OfAUuidHasTheBitsOfVersionFourWhateverTheNumbers) {
  const std::string label(32, 'a');
  for (const std::uint64_t bits : {std::uint64_t{0}, kAllOnes}) {
    const std::string id = make_wire_id(label, bits, bits);
    EXPECT_EQ(id[12], '4') << id;
    EXPECT_NE(std::string("89ab").find(id[16]), std::string::npos) << id;
  }
}

TEST(WireIdTest, OnlyThirtyTwoLowerCaseHexDigitsAreAUuid) {
  EXPECT_TRUE(is_uuid_label("0123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(is_uuid_label("0123456789ABCDEF0123456789ABCDEF"));
  EXPECT_FALSE(is_uuid_label("0123456789abcdef0123456789abcde"));
  EXPECT_FALSE(is_uuid_label("0123456789abcdef0123456789abcdefa"));
  EXPECT_FALSE(is_uuid_label("g123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(is_uuid_label("01234567-89ab-cdef-0123-456789ab"));
  EXPECT_FALSE(is_uuid_label(""));
}

TEST(WireIdTest, ItsLabelCanBeReadBackWhateverDelimitersItHolds) {
  for (const char* label : {"worker", "0:1@host", "with~tilde", "a~b~c", "~"}) {
    EXPECT_EQ(label_of(make_wire_id(label, 0x0123456789abcdef, 0)), label);
  }
}

TEST(WireIdTest, WhatIsNotOursIsItsOwnLabel) {
  EXPECT_EQ(label_of("0:12345@192.168.1.10"), "0:12345@192.168.1.10");
  EXPECT_EQ(label_of("odd~tail"), "odd~tail");
  EXPECT_EQ(label_of(""), "");
  const std::string uuid = ContenderIdGenerator::uuid().generate();
  EXPECT_EQ(label_of(uuid), uuid);
}

}  // namespace
}  // namespace simba
