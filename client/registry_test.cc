#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

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

TEST(Connect, TakesAnErrorCodeInsteadOfAnException) {
  std::error_code error = Errc::kCorrupt;
  const std::optional<Client> client = connect("memory:", error);
  EXPECT_FALSE(error);
  ASSERT_TRUE(client);
  EXPECT_TRUE((SimbaLocker{*client, "job"}).try_lock());
  EXPECT_FALSE(connect("etcd://host", error));
  EXPECT_EQ(error, Errc::kMisconfigured);
  EXPECT_TRUE(connect("memory:", ClientOptions{}, error));
  EXPECT_FALSE(error);
}

TEST(Connect, WhatElseAUrlIsGivenToTakesAnErrorCodeToo) {
  std::error_code error;
  EXPECT_TRUE(open_store("memory:", {}, error));
  EXPECT_FALSE(open_store("etcd://host", {}, error));
  EXPECT_EQ(error, Errc::kMisconfigured);
  EXPECT_FALSE(prepare_store("memory:", Prepare::kTell, error).summary.empty());
  EXPECT_FALSE(error);
  EXPECT_TRUE(prepare_store("etcd://host", Prepare::kTell, error).summary.empty());
  EXPECT_EQ(error, Errc::kMisconfigured);
  EXPECT_FALSE(inspect_store("memory:", error).findings.empty());
  EXPECT_FALSE(error);
  EXPECT_TRUE(inspect_store("etcd://host", error).findings.empty());
  EXPECT_EQ(error, Errc::kMisconfigured);
}

TEST(Connect, OptionsThatCannotWorkAreAnErrorCodeToo) {
  ClientOptions options;
  options.contend.ttl = milliseconds{1};
  std::error_code error;
  EXPECT_FALSE(connect("memory:", options, error));
  EXPECT_EQ(error, Errc::kMisconfigured);
}

// What a store takes out of the environment is the tool's and not the program's that it runs.
TEST(Registry, TellsWhichVariablesHoldASecretOfAStore) {
  setenv("MYSQL_PWD", "of-the-environment", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  struct Row {
    const char* url;
    std::vector<std::string> secrets;
  };
  const std::vector<Row> rows{{"memory:", {}},
                              {"mysql://me@db/app", {"MYSQL_PWD"}},
                              {"mariadb://me@db/app", {"MYSQL_PWD"}},
                              {"mysql://me:own@db/app", {}},
                              {"postgresql://me@db/app", {"PGPASSWORD"}},
                              {"postgresql://me:own@db/app", {}},
                              {"postgresql://me@db/app?password=own", {}},
                              {"mongodb://db/app", {}},
                              {"mongodb://me:own@db/app", {}},
                              {"mongodb://db/?authMechanism=MONGODB-AWS&authSource=$external",
                               {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}},
                              {"redis://cache", {}}};
  for (const StoreEntry& entry : registered_stores()) {
    for (const Row& row : rows) {
      if (!std::string_view(row.url).starts_with(entry.scheme + ':')) continue;
      const auto found = entry.secrets ? entry.secrets(row.url) : std::vector<std::string>{};
      EXPECT_EQ(found, row.secrets) << row.url;
    }
  }
  unsetenv("MYSQL_PWD");  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace simba
