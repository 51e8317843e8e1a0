#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simba/memory.h"
#include "simba/simba.h"

namespace simba {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view url) {
  try {
    open_store(url);
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
  return "no error";
}

TEST(Connect, OpensAMemoryStoreAndLocksOnIt) {
  const Client client = connect("memory:");
  SimbaLocker locker{client, "job"};
  const std::unique_lock lock{locker, std::try_to_lock};
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_TRUE(locker.is_in_ttl());
  EXPECT_GT(locker.token(), 0U);
}

TEST(Connect, SharesTheMutexesOfOneMemoryNameAndNoOther) {
  const Client first = connect("memory:shared");
  const Client second = connect("memory:shared");
  const Client other = connect("memory:other");
  SimbaLocker held{first, "job"};
  ASSERT_TRUE(held.try_lock());
  EXPECT_FALSE((SimbaLocker{second, "job"}).try_lock());
  EXPECT_TRUE((SimbaLocker{other, "job"}).try_lock());
}

TEST(Connect, NamesTheSchemesThereAreWhenTheOneAskedForIsNot) {
  EXPECT_THAT(error_of("etcd://host"), HasSubstr("'etcd:'"));
  EXPECT_THAT(error_of("etcd://host"), HasSubstr("memory:"));
}

TEST(Connect, SaysHowAUrlLooksWhenItHasNoScheme) {
  EXPECT_THAT(error_of("locks.db"), HasSubstr("sqlite:/path/to/file"));
  EXPECT_THAT(error_of(""), HasSubstr("no scheme"));
}

TEST(Connect, OpensAStoreFromOutsideTheTreeUnderItsRegisteredScheme) {
  const auto open = [](std::string_view url, const LogSink& log) {
    if (log) log(LogLevel::kInfo, "opened " + std::string(url));
    return make_memory();
  };
  register_store("outside", open);
  std::string said;
  ClientOptions options;
  options.log = [&](LogLevel, std::string_view line) { said = line; };
  const Client client = connect("outside:anything", options);
  EXPECT_EQ(said, "opened outside:anything");
  EXPECT_TRUE((SimbaLocker{client, "job"}).try_lock());
  EXPECT_THROW(register_store("outside", open), Error);
}

}  // namespace
}  // namespace simba
