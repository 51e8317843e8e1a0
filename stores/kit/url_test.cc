#include "stores/kit/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "simba/error.h"

namespace simba::kit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

template <class Call>
std::string error_of(Call call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
}

TEST(UrlTest, DecodesPercentSigns) {
  EXPECT_EQ(percent_decoded("x", "a%20b%2Fc"), "a b/c");
  for (const char* bad : {"%", "%2", "%zz", "%00", "a%-1"}) {
    EXPECT_THAT(error_of([&] { percent_decoded("mine URL", bad); }), StartsWith("mine URL: "))
        << bad;
  }
}

TEST(UrlTest, ReadsNamesAndValues) {
  EXPECT_EQ(parse_query("x", "a=1&b=%26&c="), (Query{{"a", "1"}, {"b", "&"}, {"c", ""}}));
  EXPECT_TRUE(parse_query("x", "").empty());
  EXPECT_THAT(error_of([] { parse_query("x", "a=1&secret"); }),
              AllOf(HasSubstr("parameter 2"), Not(HasSubstr("secret"))));
}

TEST(UrlTest, KnowsWhatWasMeant) {
  const std::array<std::string_view, 3> known{"table", "pooler", "connections"};
  EXPECT_EQ(did_you_mean("tabel", known), "; did you mean 'table'?");
  EXPECT_EQ(did_you_mean("conections", known), "; did you mean 'connections'?");
  EXPECT_EQ(did_you_mean("tls", known), "; it can be table, pooler or connections");
}

TEST(UrlTest, AnUnknownParameterIsNamedUnlessItMayBeAPieceOfAPassword) {
  const std::array<std::string_view, 1> known{"table"};
  const auto said = [&](std::string_view query, std::string_view name) {
    return error_of([&] { refuse_parameter("x URL", query, name, known); });
  };
  EXPECT_EQ(said("tabel=1", "tabel"),
            "x URL: there is no parameter 'tabel'; did you mean 'table'?");
  EXPECT_THAT(said("canary=1@host/db?table=x", "canary"),
              AllOf(HasSubstr("%3F"), Not(HasSubstr("canary"))));
  const std::string long_name(33, 'c');
  EXPECT_THAT(said(long_name + "=1", long_name), Not(HasSubstr("cc")));
}

TEST(UrlTest, ANumberHasLimits) {
  EXPECT_EQ(parse_number("x", "n", "8", 2, 9), 8);
  for (const char* bad : {"1", "10", "", "8x", "x", "99999999999999999999"}) {
    EXPECT_THAT(error_of([&] { parse_number("x", "n", bad, 2, 9); }), HasSubstr("from 2 to 9"))
        << bad;
  }
}

}  // namespace
}  // namespace simba::kit
