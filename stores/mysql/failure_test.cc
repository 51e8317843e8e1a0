#include "stores/mysql/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stores/mysql/bell.h"
#include "stores/mysql/literal.h"

namespace simba::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Endpoint endpoint() { return Endpoint(mysql_options("mysql://me:canary@db/app")); }

TEST(MysqlFailure, SaysWhatKindOfTroubleANumberIs) {
  struct Row {
    unsigned number;
    Errc code;
  };
  const Endpoint there = endpoint();
  for (const Row& row : {Row{1045, Errc::kDenied},        Row{1142, Errc::kDenied},
                         Row{1290, Errc::kDenied},        Row{2059, Errc::kDenied},
                         Row{5010, Errc::kDenied},        Row{1146, Errc::kMisconfigured},
                         Row{1049, Errc::kMisconfigured}, Row{2026, Errc::kMisconfigured},
                         Row{1665, Errc::kMisconfigured}, Row{1205, Errc::kTimeout},
                         Row{1213, Errc::kTimeout},       Row{1969, Errc::kTimeout},
                         Row{1040, Errc::kUnreachable},   Row{1047, Errc::kUnreachable},
                         Row{2003, Errc::kUnreachable},   Row{2013, Errc::kUnreachable},
                         Row{1927, Errc::kUnreachable},   Row{1136, Errc::kUnreachable},
                         Row{1054, Errc::kUnreachable},   Row{1461, Errc::kUnreachable},
                         Row{3118, Errc::kDenied},        Row{3159, Errc::kMisconfigured},
                         Row{3989, Errc::kDenied},        Row{3032, Errc::kUnreachable},
                         Row{3100, Errc::kUnreachable},   Row{3101, Errc::kTimeout},
                         Row{4151, Errc::kDenied},        Row{4094, Errc::kTimeout},
                         Row{1094, Errc::kTimeout},       Row{1095, Errc::kDenied},
                         Row{3058, Errc::kTimeout},       Row{1690, Errc::kCorrupt},
                         Row{4242, Errc::kCorrupt}}) {
    EXPECT_EQ(failure(row.number, "text", there).errc(), row.code) << row.number;
  }
}

TEST(MysqlFailure, AServerThatHasNoMoreToGiveIsAskedAgainAndItIsSaidWhatToGiveIt) {
  struct Row {
    unsigned number;
    const char* advice;
    bool breaks;
  };
  const Endpoint there = endpoint();
  for (const Row& row :
       {Row{1026, "disk or memory", false}, Row{1042, "skip_name_resolve", true},
        Row{1043, "proxy", true}, Row{1135, "TasksMax", true},
        Row{1180, "whether it acted is unknown", true}, Row{1206, "innodb_buffer_pool_size", false},
        Row{1637, "INNODB_TRX", false}}) {
    SCOPED_TRACE(row.number);
    const Failure seen = failure(row.number, "text", there);
    EXPECT_EQ(seen.errc(), Errc::kUnreachable);
    EXPECT_THAT(seen.what(), HasSubstr(row.advice));
    EXPECT_EQ(breaks_connection(row.number), row.breaks);
  }
}

TEST(MysqlFailure, OfSeveralServersOneThatOnlyReadsIsNotTheLastWord) {
  const Endpoint one = endpoint(), several(mysql_options("mysql://one,two/app"));
  MysqlOptions options = several.options();
  options.connector = [] { return nullptr; };
  const Endpoint given(options);
  for (const unsigned number : {1290U, 1792U, 1836U}) {
    SCOPED_TRACE(number);
    EXPECT_EQ(failure(number, "text", one).errc(), Errc::kDenied);
    EXPECT_EQ(failure(number, "text", given).errc(), Errc::kDenied);
    const Failure next = failure(number, "text", several);
    EXPECT_EQ(next.errc(), Errc::kUnreachable);
    EXPECT_TRUE(next.is_read_only());
    EXPECT_THAT(next.what(), AllOf(HasSubstr("replica"), HasSubstr("primary")));
    EXPECT_TRUE(breaks_connection(number));
  }
  EXPECT_EQ(failure(1142, "text", several).errc(), Errc::kDenied);
}

TEST(MysqlFailure, TellsAConnectionThatEndedFromACertificateThatProvesNothing) {
  const Endpoint there = endpoint();
  for (const char* cut : {"TLS/SSL error: Connection reset by peer (104)",
                          "TLS/SSL error: unexpected eof while reading",
                          "TLS/SSL error: The TLS connection was non-properly terminated."}) {
    EXPECT_EQ(failure(2026, cut, there).errc(), Errc::kUnreachable) << cut;
    EXPECT_EQ(connect_failure(2026, cut, there).errc(), Errc::kUnreachable) << cut;
  }
  for (const char* unproven : {"TLS/SSL error: certificate verify failed (self-signed)",
                               "TLS/SSL error: No such file or directory (2)", "",
                               "SSL is required, but the server does not support it"}) {
    EXPECT_EQ(connect_failure(2026, unproven, there).errc(), Errc::kMisconfigured) << unproven;
  }
}

TEST(MysqlFailure, WhatIsSaidBeforeTlsIsAdviceAndNoVerdict) {
  const auto before_tls = [](const std::string& said) {
    return connect_failure(2002,
                           "Received error packet before completion of TLS handshake. The "
                           "authenticity of the following error cannot be verified: " +
                               said,
                           endpoint());
  };
  const Failure full = before_tls("1040 - Too many connections");
  EXPECT_EQ(full.errc(), Errc::kUnreachable);
  EXPECT_THAT(full.what(), HasSubstr("max_connections"));
  for (const char* said : {"1045 - Access denied", "1049 - Unknown database", "nothing", ""}) {
    EXPECT_EQ(before_tls(said).errc(), Errc::kUnreachable) << said;
    EXPECT_THAT(before_tls(said).what(), HasSubstr("the server cannot be reached")) << said;
  }
}

TEST(MysqlFailure, IsOneLineThatNamesTheServerAndNoPassword) {
  const std::string what = failure(1142, "denied\nfor you", endpoint()).what();
  EXPECT_THAT(what, AllOf(HasSubstr("mysql at db:3306/app"), HasSubstr("denied for you"),
                          HasSubstr("error 1142"), HasSubstr("GRANT SELECT, INSERT, UPDATE"),
                          Not(HasSubstr("\n")), Not(HasSubstr("canary"))));
}

TEST(MysqlFailure, RepeatsNoMoreThanTheBeginningAndNothingThatATerminalObeys) {
  const std::string text = "\x1b]0;x\a\r\n\x9b" + std::string(10'000, 'x');
  for (const Failure& error :
       {failure(1142, text, endpoint()), connect_failure(1045, text, endpoint())}) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("(?]0;x?  ?xxx"), HasSubstr("..., error 1"),
                                    Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
    EXPECT_LT(std::string_view(error.what()).size(), 1'000U);
  }
}

TEST(MysqlFailure, KnowsWhichErrorsSpoilAConnection) {
  for (const unsigned number : {1290U, 1146U, 1927U, 2006U, 2013U, 1047U, 1054U, 4242U}) {
    EXPECT_TRUE(breaks_connection(number)) << number;
  }
  for (const unsigned number :
       {1094U, 1095U, 1205U, 1213U, 1461U, 1969U, 1142U, 1366U, 1977U, 3058U}) {
    EXPECT_FALSE(breaks_connection(number)) << number;
  }
}

TEST(MysqlLiteral, IsOfHexadecimalDigitsWhateverItHolds) {
  EXPECT_EQ(literal("job"), "x'6a6f62'");
  EXPECT_EQ(literal(""), "x''");
  EXPECT_EQ(literal(std::string_view("'\0\xff;", 4)), "x'2700ff3b'");
}

TEST(MysqlBell, HasANameOfItsOwnForEachMutexOfEachTable) {
  const Endpoint other(mysql_options("mysql://db/app?table=other"));
  const std::string bell = bell_of(endpoint(), "job");
  EXPECT_EQ(bell, bell_of(endpoint(), "job"));
  EXPECT_NE(bell, bell_of(endpoint(), "jo"));
  EXPECT_NE(bell, bell_of(other, "job"));
  EXPECT_LE(bell.size(), 63U) << "a name of MySQL's has at most 64 characters";
}

}  // namespace
}  // namespace simba::mysql
