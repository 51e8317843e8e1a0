#include "stores/postgres/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simba::postgres {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PostgresFailure, OfAnAttemptToConnectIsKnownByItsSqlState) {
  struct Row {
    const char* text;
    Errc code;
  };
  for (const Row& row : {
           Row{"connection to server at \"h\", port 1 failed: FATAL:  28P01: mot de passe",
               Errc::kDenied},
           Row{"connection failed: FATAL:  3D000: no such database\nLOCATION:  x, y.c:1",
               Errc::kMisconfigured},
           Row{"failed: FATAL:  53300: sorry, too many clients already", Errc::kUnreachable},
           Row{"failed: ERROR:  54000: too many notifications in the NOTIFY queue",
               Errc::kUnreachable},
           Row{"failed: FATAL:  57P03: the database system is starting up", Errc::kUnreachable},
           Row{"failed: Connection refused\n\tIs the server running?", Errc::kUnreachable},
           Row{"failed: SSL error: certificate verify failed", Errc::kMisconfigured},
           Row{"root certificate file \"/x\" does not exist", Errc::kMisconfigured},
       }) {
    EXPECT_EQ(connect_failure(row.text, "h:1/db").errc(), row.code) << row.text;
  }
}

TEST(PostgresFailure, IsOneLineWithoutPlacesInSources) {
  const std::string what =
      connect_failure("failed: FATAL:  28P01: no\nLOCATION:  auth_failed, auth.c:326\n", "h:1/db")
          .what();
  EXPECT_THAT(what, AllOf(HasSubstr("postgres at h:1/db"), HasSubstr("28P01: no"),
                          Not(HasSubstr("LOCATION")), Not(HasSubstr("\n"))));
}

TEST(PostgresFailure, RepeatsNoMoreThanTheBeginningAndNothingThatATerminalObeys) {
  const std::string text = "\x1b]0;x\a\r\n\x9b" + std::string(10'000, 'x');
  const auto said = [](const Error& error) -> std::string { return error.what(); };
  for (const std::string& what :
       {said(connect_failure("failed: FATAL:  28P01: " + text, "h:1/db")),
        said(connect_failure("failed: SSL " + text, "h:1/db")),
        said(connect_failure(text, "h:1/db")), said(server_failure("42501", text, "h:1/db", "t")),
        said(server_failure(text, text, "h:1/db", "t"))}) {
    EXPECT_THAT(what, AllOf(HasSubstr("postgres at h:1/db"), HasSubstr("?]0;x? ; ?xxx"),
                            HasSubstr("..."), Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
    EXPECT_LT(what.size(), 2'000U);
  }
}

TEST(PostgresFailure, KnowsWhichErrorsSpoilAConnection) {
  for (const char* state : {"57P01", "57P02", "25006", "26000", "0A000", "08006", ""}) {
    EXPECT_TRUE(breaks_connection(state)) << state;
  }
  for (const char* state : {"55P03", "57014", "40001", "42501", "53100", "23505", "54000"}) {
    EXPECT_FALSE(breaks_connection(state)) << state;
  }
}

}  // namespace
}  // namespace simba::postgres
