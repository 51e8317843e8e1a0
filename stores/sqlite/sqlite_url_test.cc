#include <gmock/gmock.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

using ::testing::HasSubstr;
using Synchronous = SqliteOptions::Synchronous;

TEST(SqliteUrl, IsTheDefaultFileWhenItNamesNone) {
  EXPECT_TRUE(sqlite_options("sqlite:").file.empty());
  EXPECT_EQ(sqlite_options("sqlite:?synchronous=full").synchronous, Synchronous::kFull);
}

TEST(SqliteUrl, NamesAFileInEachForm) {
  EXPECT_EQ(sqlite_options("sqlite:locks.db").file, "locks.db");
  EXPECT_EQ(sqlite_options("sqlite:/var/x/locks.db").file, "/var/x/locks.db");
  EXPECT_EQ(sqlite_options("sqlite:///var/x/locks.db").file, "/var/x/locks.db");
  EXPECT_EQ(sqlite_options("sqlite://localhost/var/x.db").file, "/var/x.db");
  EXPECT_EQ(sqlite_options("sqlite:/a%20b%3Fc.db").file, "/a b?c.db");
}

TEST(SqliteUrl, ReadsItsParameters) {
  const auto options = sqlite_options("sqlite:///x.db?synchronous=normal&open-timeout=250");
  EXPECT_EQ(options.synchronous, Synchronous::kNormal);
  EXPECT_EQ(options.open_timeout, 250ms);
}

TEST(SqliteUrl, SaysWhatIsWrongAndWhatWasMeant) {
  const auto why = [](const char* url) { return error_of([&] { sqlite_options(url); }); };
  EXPECT_THAT(why("sqlite:x?synchronus=full"), HasSubstr("did you mean 'synchronous'?"));
  EXPECT_THAT(why("sqlite:x?synchronous=ful"), HasSubstr("did you mean 'full'?"));
  EXPECT_THAT(why("sqlite:x?synchronous"), HasSubstr("has no value"));
  EXPECT_THAT(why("sqlite://host/x.db"), HasSubstr("names the host 'host'"));
  EXPECT_THAT(why("sqlite:x%2"), HasSubstr("%XX"));
  EXPECT_THAT(why("sqlite:x%00y"), HasSubstr("%XX"));
  EXPECT_THAT(why("sqlite:x#y"), HasSubstr("%23"));
  EXPECT_THAT(why("mysql:x"), HasSubstr("does not begin with sqlite:"));
  EXPECT_THAT(why("sqlite:x?open-timeout=0"), HasSubstr("1 to 3600000"));
}

TEST(SqliteDefaultFile, IsInTheStateDirectoryOfTheUser) {
  const std::string answer = as_ordinary_user(::testing::TempDir() + "none", []() -> std::string {
    setenv("XDG_STATE_HOME", "/some/state", 1);  // NOLINT(concurrency-mt-unsafe)
    const std::string with = default_sqlite_file().string();
    setenv("XDG_STATE_HOME", "relative", 1);  // NOLINT(concurrency-mt-unsafe)
    setenv("HOME", "/home/somebody", 1);      // NOLINT(concurrency-mt-unsafe)
    return with + " " + default_sqlite_file().string();
  });
  EXPECT_EQ(answer, "/some/state/simba/locks.db /home/somebody/.local/state/simba/locks.db");
}

TEST(SqliteDefaultFile, IsWhereTheUserLivesAlsoWhenTheEnvironmentDoesNotSayIt) {
  const std::string answer = as_ordinary_user(::testing::TempDir() + "none", []() -> std::string {
    unsetenv("XDG_STATE_HOME");                    // NOLINT(concurrency-mt-unsafe)
    unsetenv("HOME");                              // NOLINT(concurrency-mt-unsafe)
    const passwd* const me = getpwuid(geteuid());  // NOLINT(concurrency-mt-unsafe)
    if (me == nullptr) return error_of([] { default_sqlite_file(); });
    const std::string home = me->pw_dir;
    return default_sqlite_file() == home + "/.local/state/simba/locks.db" ? "HOME is" : "not there";
  });
  EXPECT_THAT(answer, HasSubstr("HOME is"));  // or "HOME is not set"
}

TEST(SqliteDefaultFile, IsASystemFileForRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(default_sqlite_file(), "/var/lib/simba/locks.db");
}

}  // namespace
}  // namespace simba::sqlite
