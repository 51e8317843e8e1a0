#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "simba/postgres.h"
#include "stores/postgres/endpoint.h"

namespace simba::postgres {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Pooler = PostgresOptions::Pooler;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
}

Endpoint::Keywords keywords_of(const std::string& url) {
  return Endpoint(postgres_options(url)).candidates().at(0);
}

TEST(PostgresUrl, KeepsWhatIsLibpqsAndTakesWhatIsOurs) {
  const PostgresOptions options = postgres_options(
      "postgresql://me:pw@db:5433/"
      "app?table=ops.locks&sslmode=require&pooler=transaction&connections=20");
  EXPECT_EQ(options.conninfo, "postgresql://me:pw@db:5433/app?sslmode=require");
  EXPECT_EQ(options.table, "ops.locks");
  EXPECT_EQ(options.pooler, Pooler::kTransaction);
  EXPECT_EQ(options.connections, 20U);
  EXPECT_EQ(postgres_options("postgresql:").table, "simba_mutex");
  EXPECT_EQ(postgres_options("postgresql:").pooler, Pooler::kDetect);
}

TEST(PostgresUrl, VerifiesTlsInFullUnlessItSaysOtherwise) {
  EXPECT_THAT(keywords_of("postgresql://db/app"), Contains(Pair("sslmode", "verify-full")));
  EXPECT_THAT(keywords_of("postgresql:"), Contains(Pair("sslmode", "verify-full")));
  EXPECT_THAT(keywords_of("postgresql://db/app?sslmode=disable"),
              Contains(Pair("sslmode", "disable")));
}

TEST(PostgresUrl, TakesNoSslThatVerifiesNobody) {
  for (const char* query : {"?ssl=true", "?%73sl=true", "?sslmode=verify-full&ssl=true"}) {
    PostgresOptions given;
    given.conninfo = "postgresql://db/app" + std::string(query);
    EXPECT_THAT(error_of([&] { Endpoint{given}; }), HasSubstr("(sslmode=verify-full)")) << query;
    EXPECT_THAT(error_of([&] { Endpoint{postgres_options(given.conninfo)}; }),
                HasSubstr("(sslmode=verify-full)"))
        << query;
  }
}

TEST(PostgresUrl, NamesHostsOneByOneAndThenWantsTheOneThatWrites) {
  const Endpoint endpoint(postgres_options("postgresql://a:1,b:2/app"));
  ASSERT_EQ(endpoint.candidates().size(), 2U);
  EXPECT_THAT(endpoint.candidates()[0],
              AllOf(Contains(Pair("host", "a")), Contains(Pair("port", "1"))));
  EXPECT_THAT(endpoint.candidates()[1],
              AllOf(Contains(Pair("host", "b")), Contains(Pair("port", "2"))));
  EXPECT_THAT(endpoint.candidates()[1], Contains(Pair("target_session_attrs", "read-write")));
  EXPECT_EQ(endpoint.where(), "a:1,b:2/app");
  EXPECT_THAT(keywords_of("postgresql://a/app"),
              Not(Contains(Pair("target_session_attrs", "read-write"))));
}

TEST(PostgresUrl, TakesTheHostsOfTheEnvironmentWhereItNamesNone) {
  // NOLINTBEGIN(concurrency-mt-unsafe)
  setenv("PGHOST", "a,b", 1);
  setenv("PGPORT", "1,2", 1);
  const Endpoint endpoint(postgres_options("postgresql:///app"));
  const std::string own = Endpoint(postgres_options("postgresql://c:3/app")).where();
  unsetenv("PGHOST");
  unsetenv("PGPORT");
  setenv("PGHOSTADDR", "10.0.0.1,10.0.0.2", 1);
  const Endpoint addresses(postgres_options("postgresql:///app"));
  unsetenv("PGHOSTADDR");
  // NOLINTEND(concurrency-mt-unsafe)
  EXPECT_EQ(endpoint.where(), "a:1,b:2/app");
  EXPECT_EQ(own, "c:3/app");
  ASSERT_EQ(endpoint.candidates().size(), 2U);
  EXPECT_THAT(endpoint.candidates()[1],
              AllOf(Contains(Pair("host", "b")), Contains(Pair("port", "2")),
                    Contains(Pair("target_session_attrs", "read-write"))));
  ASSERT_EQ(addresses.candidates().size(), 2U);
  EXPECT_THAT(addresses.candidates()[0],
              AllOf(Contains(Pair("hostaddr", "10.0.0.1")),
                    Contains(Pair("target_session_attrs", "read-write"))));
}

TEST(PostgresUrl, SaysWhatIsWrongAndWhatWasMeant) {
  const auto why = [](const std::string& url) {
    return error_of([&] { Endpoint{postgres_options(url)}; });
  };
  EXPECT_THAT(why("postgresql://db/app?tabel=x"), HasSubstr("did you mean 'table'?"));
  EXPECT_THAT(why("postgresql://db/app?sslmod=disable"), HasSubstr("did you mean 'sslmode'?"));
  EXPECT_THAT(why("postgresql://db/app?pooler=yes"), HasSubstr("detect, none or transaction"));
  EXPECT_THAT(why("postgresql://db/app?connections=1"), HasSubstr("2 to 1000"));
  EXPECT_THAT(why("postgresql://db/app?table"), HasSubstr("has no value"));
  EXPECT_THAT(why("postgresql://db/app?connect_timeout=0"), HasSubstr("1 to 3600"));
  EXPECT_THAT(why("postgresql://a:1,b:2,c:3/app?port=1,2"), HasSubstr("hosts"));
  for (const char* port : {"x", "0", "65536", "1,x"}) {
    EXPECT_THAT(why("postgresql://a,b/app?port=" + std::string(port)), HasSubstr("1 to 65535"));
  }
  EXPECT_THAT(why("mysql://db"), HasSubstr("begins with postgresql:"));
  for (const char* table : {"", "a.b.c", "a b", "a\"b", "a;b", "1a", ".a", "a."}) {
    EXPECT_THAT(why("postgresql://db/app?table=" + std::string(table)), HasSubstr("letters"))
        << table;
  }
  EXPECT_THAT(why("postgresql://db/app?table=" + std::string(64, 'x')), HasSubstr("63"));
}

TEST(PostgresUrl, NeverRepeatsAPassword) {
  for (const char* url :
       {"postgresql://me:canary%zz@db/app", "postgresql://me:canary@db:port:port/app?x=canary",
        "postgresql://me:pa?canary=1@db/app",
        "postgresql://me:can?ary-canary-canary-canary-canary-canary=1@db/app",
        "postgresql://me:canary@[db/app",
        "postgresql://me:canary@db/app?connect_timeout=canary&table=x"}) {
    const std::string error = error_of([&] { Endpoint{postgres_options(url)}; });
    EXPECT_THAT(error, AllOf(Not(HasSubstr("canary")), Not(HasSubstr("none")))) << url;
  }
  EXPECT_THAT(Endpoint(postgres_options("postgresql://me:canary@db/app")).where(),
              Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace simba::postgres
