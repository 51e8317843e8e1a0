#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "simba/mysql.h"
#include "stores/mysql/endpoint.h"
#include "testing/servers/directory.h"

namespace simba::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Tls = MysqlOptions::Tls;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
}

TEST(MysqlUrl, SaysAllThereIsToSay) {
  const MysqlOptions options = mysql_options(
      "mysql://me:p%40ss@db:3307,[::1]:3308,other/app?table=locks&sslmode=require&sslrootcert=/ca"
      "&sslcert=/c&sslkey=/k&connections=20&dialect=mysql&max_id_length=32&connect_timeout=7");
  EXPECT_EQ(options.hosts,
            (std::vector<MysqlOptions::Host>{{"db", 3307}, {"::1", 3308}, {"other", 3306}}));
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "p@ss");
  EXPECT_EQ(options.database, "app");
  EXPECT_EQ(options.table, "locks");
  EXPECT_EQ(options.tls, Tls::kRequire);
  EXPECT_EQ(options.root_certificate, "/ca");
  EXPECT_EQ(options.certificate, "/c");
  EXPECT_EQ(options.key, "/k");
  EXPECT_EQ(options.connections, 20U);
  EXPECT_EQ(options.dialect, MysqlOptions::Dialect::kMysql);
  EXPECT_EQ(options.max_id_length, 32U);
  EXPECT_EQ(options.connect_timeout, milliseconds{7'000});
}

TEST(MysqlUrl, HasTheDefaultsOfTheSeedsAndVerifiesTls) {
  for (const char* url : {"mysql:", "mariadb://", "mysql:///", "mysql://me@"}) {
    const MysqlOptions options = mysql_options(url);
    EXPECT_EQ(options.hosts, (std::vector<MysqlOptions::Host>{{"127.0.0.1", 3306}})) << url;
    EXPECT_EQ(options.database, "simba_db");
    EXPECT_EQ(options.table, "simba_mutex");
    EXPECT_EQ(options.tls, Tls::kVerify);
    EXPECT_EQ(options.dialect, MysqlOptions::Dialect::kDetect);
  }
}

TEST(MysqlUrl, TakesThePasswordFromAFile) {
  const servers::Directory files;
  const std::string file = files.path() / "password";
  std::ofstream(file) << "secret\n";
  EXPECT_EQ(mysql_options("mysql://me@db?password-file=" + file).password, "secret");
  EXPECT_THAT(error_of([] { mysql_options("mysql://me@db?password-file=/none"); }),
              HasSubstr("cannot be read"));
}

TEST(MysqlUrl, SaysWhatIsWrongAndWhatWasMeant) {
  const auto why = [](const std::string& url) {
    return error_of([&] { Endpoint{mysql_options(url)}; });
  };
  EXPECT_THAT(why("mysql://db/app?tabel=x"), HasSubstr("did you mean 'table'?"));
  EXPECT_THAT(why("mysql://db/app?sslmod=disable"), HasSubstr("did you mean 'sslmode'?"));
  EXPECT_THAT(why("mysql://db/app?sslmode=prefer"), HasSubstr("verify-full, require, disable"));
  EXPECT_THAT(why("mysql://db/app?connections=1"), HasSubstr("2 to 1000"));
  EXPECT_THAT(why("mysql://db/app?max_id_length=16"), HasSubstr("32 to 128"));
  EXPECT_THAT(why("mysql://db/app?connect_timeout=0"), HasSubstr("1 to 3600"));
  EXPECT_THAT(why("mysql://db/app?table"), HasSubstr("has no value"));
  EXPECT_THAT(why("mysql://db:port/app"), HasSubstr("1 to 65535"));
  EXPECT_THAT(why("mysql://[::1/app"), HasSubstr("has no end"));
  EXPECT_THAT(why("mysql:db"), HasSubstr("mysql://user@host"));
  EXPECT_THAT(why("postgresql://db"), HasSubstr("begins with mysql:"));
  EXPECT_THAT(why("mysql://db/app?sslcert=/c"), HasSubstr("needs its key"));
  for (const char* table : {"", "a.b", "a b", "a`b", "a;b"}) {
    EXPECT_THAT(why("mysql://db/app?table=" + std::string(table)), HasSubstr("letters")) << table;
  }
  EXPECT_THAT(why("mysql://db/a%60b"), HasSubstr("letters"));
  EXPECT_THAT(why("mysql://db/app?table=" + std::string(65, 'x')), HasSubstr("64"));
}

TEST(MysqlUrl, NeverRepeatsAPassword) {
  for (const char* url :
       {"mysql://me:canary%zz@db/app", "mysql://me:canary@db:canary/app",
        "mysql://me:pa?canary=1@db/app",
        "mysql://me:can?ary-canary-canary-canary-canary-canary=1@db/app",
        "mysql://me:canary@[db/app", "mysql://me:canary@db/app?connect_timeout=canary"}) {
    const std::string error = error_of([&] { Endpoint{mysql_options(url)}; });
    EXPECT_THAT(error, AllOf(Not(HasSubstr("canary")), Not(HasSubstr("none")))) << url;
  }
  EXPECT_THAT(Endpoint(mysql_options("mysql://me:canary@db/app")).where(),
              Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace simba::mysql
