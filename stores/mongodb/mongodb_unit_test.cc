#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simba/mongodb.h"
#include "stores/mongodb/document.h"
#include "stores/mongodb/endpoint.h"
#include "stores/mongodb/failure.h"

// URLs, what the driver is told, and what errors mean, without a server.
namespace simba::mongodb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const std::string& url) {
  try {
    mongodb_options(url);
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
}

TEST(MongodbUrlTest, TakesItsOwnParametersAndLeavesTheDriversAsTheyAre) {
  const MongodbOptions options = mongodb_options(
      "mongodb://u:p%40w@one:1,two:2/?replicaSet=rs0&database=db&collection=c.d&connections=3"
      "&authSource=admin");
  EXPECT_EQ(options.uri, "mongodb://u:p%40w@one:1,two:2/?replicaSet=rs0&authSource=admin");
  EXPECT_EQ(options.database, "db");
  EXPECT_EQ(options.collection, "c.d");
  EXPECT_EQ(options.connections, 3U);
}

TEST(MongodbUrlTest, TheDefaultsAreTheArticles) {
  const MongodbOptions options = mongodb_options("mongodb://localhost:27017");
  EXPECT_EQ(options.database, "MongoLocks");
  EXPECT_EQ(options.collection, "pessimisticLocks");
  EXPECT_EQ(mongodb_options("mongodb://h?tls=true").uri, "mongodb://h/?tls=true");
}

TEST(MongodbUrlTest, RefusesWhatItDoesNotKnowAndRepeatsNoPassword) {
  EXPECT_THAT(refusal("mongo://h"), HasSubstr("mongodb://"));
  EXPECT_THAT(refusal("mongodb://h/?colection=x"),
              AllOf(HasSubstr("colection"), HasSubstr("did you mean 'collection'")));
  EXPECT_THAT(refusal("mongodb://h/?replicaset=x&connections=1"), HasSubstr("connections"));
  EXPECT_THAT(refusal("mongodb://u:can?ary=1@h/"), AllOf(HasSubstr("%3F"), Not(HasSubstr("ary"))));
  EXPECT_THAT(refusal("mongodb://u:canary?4711-and-so-on-and-on-and-on-and@h/"),
              Not(HasSubstr("4711")));
}

TEST(MongodbEndpointTest, TheDriverWaitsForAPrimaryNoLongerThanASecond) {
  const auto wait_of = [](const std::string& query) {
    const auto endpoint = Endpoint::make(mongodb_options("mongodb://127.0.0.1:1/" + query));
    mongoc_client_t* const client = endpoint->pop();
    const std::int32_t wait = mongoc_uri_get_option_as_int32(
        mongoc_client_get_uri(client), MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 0);
    endpoint->push(client);
    return wait;
  };
  EXPECT_EQ(wait_of(""), 1'000);
  EXPECT_EQ(wait_of("?serverSelectionTimeoutMS=30000"), 1'000);
  EXPECT_EQ(wait_of("?serverSelectionTimeoutMS=300"), 300);
}

TEST(MongodbFailureTest, ARouterIsRefusedBecauseItsClockWouldDecide) {
  Document hello;
  hello.number("maxWireVersion", 17).flag("ismaster", true);
  check_greeting(hello.get(), "h");
  hello.text("msg", "isdbgrid");
  try {
    check_greeting(hello.get(), "h:1/db.c");
    FAIL() << "mongos was let in";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("h:1/db.c"), HasSubstr("mongos"), HasSubstr("replica set")));
  }
}

TEST(MongodbFailureTest, AServerBefore42IsRefusedWithTheReason) {
  for (const int version : {8, 17}) {
    check_version(Document().number("maxWireVersion", version).get(), "h");
  }
  Document hello;
  hello.number("maxWireVersion", 7).flag("ismaster", true);
  try {
    check_greeting(hello.get(), "h:1/db.c");
    FAIL() << "4.0 was let in";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("h:1/db.c"), HasSubstr("wire version 7"),
                                    HasSubstr("MongoDB 4.2")));
  }
}

Failure failure_of(std::uint32_t domain, std::uint32_t code, const char* text) {
  bson_error_t error{};
  bson_set_error(&error, domain, code, "%s", text);
  return failure(error, nullptr, "h:1/db.c");
}

TEST(MongodbFailureTest, OnlyACertificateThatProvesNothingIsAnErrorOfTls) {
  const auto said = [](const char* text) {
    return failure_of(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, text).errc();
  };
  for (const char* wrong :
       {"TLS handshake failed: certificate verify failed (64): IP address mismatch",
        "TLS handshake failed: Failed certificate verification", "Failed initialize TLS state.",
        "TLS could not be set up: check tlsCAFile and tlsCertificateKeyFile"}) {
    EXPECT_EQ(said(wrong), Errc::kMisconfigured) << wrong;
  }
  for (const char* passing :
       {"TLS handshake failed: Connection timed out", "TLS handshake timed out.",
        "TLS handshake failed: Connection reset by peer", "socket error or timeout"}) {
    EXPECT_EQ(said(passing), Errc::kUnreachable) << passing;
  }
  EXPECT_EQ(failure_of(MONGOC_ERROR_CLIENT, MONGOC_ERROR_CLIENT_AUTHENTICATE, "no").errc(),
            Errc::kDenied);
}

TEST(MongodbFailureTest, AServerThatTheDriverDoesNotSpeakToIsRefusedWithTheReason) {
  const Failure old = failure_of(MONGOC_ERROR_PROTOCOL, MONGOC_ERROR_PROTOCOL_BAD_WIRE_VERSION,
                                 "Server at h:1 reports wire version 5");
  EXPECT_EQ(old.errc(), Errc::kMisconfigured);
  EXPECT_THAT(old.what(), AllOf(HasSubstr("h:1/db.c"), HasSubstr("MongoDB 4.2"),
                                HasSubstr("reports wire version 5")));
}

TEST(MongodbFailureTest, WhatAnErrorOfTheServerMeans) {
  for (const int ambiguous : {64,  50,  112, 262, 24,  46,  175, 208, 215, 237,  239,
                              246, 264, 267, 314, 355, 365, 402, 433, 449, 11601}) {
    EXPECT_EQ(server_failure(ambiguous, "x", "h").errc(), Errc::kTimeout) << ambiguous;
  }
  for (const int gone : {91, 189, 10107, 11600, 13435, 94, 134, 211, 216, 371, 14031}) {
    EXPECT_EQ(server_failure(gone, "x", "h").errc(), Errc::kUnreachable) << gone;
    EXPECT_TRUE(breaks_connection(server_failure(gone, "x", "h"))) << gone;
  }
  EXPECT_EQ(server_failure(13, "x", "h").errc(), Errc::kDenied);
  EXPECT_EQ(server_failure(18, "x", "h").errc(), Errc::kDenied);
  EXPECT_EQ(server_failure(148, "x", "h").errc(), Errc::kMisconfigured);
  EXPECT_EQ(server_failure(4242, "odd", "h").errc(), Errc::kCorrupt);
  EXPECT_THAT(server_failure(4242, "odd", "h").what(), HasSubstr("odd, code 4242"));
}

TEST(MongodbFailureTest, RepeatsNoMoreThanTheBeginningAndNothingThatATerminalObeys) {
  const std::string text = "\x1b]0;x\a\r\n\x9b" + std::string(10'000, 'x');
  for (const Failure& failure : {server_failure(13, text, "h"), unproven(text, "h")}) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("(?]0;x?  ?xxx"), HasSubstr("...")));
    EXPECT_LT(std::string_view(failure.what()).size(), 1'000U);
  }
  const Failure lost = failure_of(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, text.c_str());
  EXPECT_THAT(lost.what(), HasSubstr("(?]0;x?  ?xxx"));
}

}  // namespace
}  // namespace simba::mongodb
