#include "torture/target.h"

#include <gtest/gtest.h>

namespace simba::torture {
namespace {

TEST(TargetTest, WhatItsDocumentsPromiseLessGoesByTheUrl) {
  const auto rules = [](const char* url) { return target_of(url).rules; };
  EXPECT_TRUE(rules("zookeeper://a").queues);
  EXPECT_EQ(rules("zookeeper://a").old_refusal, kOldestRead);
  EXPECT_EQ(rules("mongodb://a").old_question, nanoseconds{0});
  EXPECT_EQ(rules("mongodb://a,b/?replicaSet=r").old_question, kOldestRead);
  EXPECT_EQ(rules("mongodb://a,b/?replicaSet=r").old_refusal, nanoseconds{0});
  EXPECT_TRUE(rules("postgresql://a/b").may_forget_release);
  EXPECT_EQ(rules("mysql://a/b").old_question, nanoseconds{0});
  EXPECT_EQ(rules("mysql://a,c/b").old_refusal, kOldestRead);
  EXPECT_EQ(rules("redis://a").old_question, nanoseconds{0});
  EXPECT_FALSE(rules("redis://a").is_ours);
  for (const char* one : {"redis://a", "rediss://a", "mysql://a/b", "mariadb://a/b",
                          "postgres://a/b", "postgresql://a/b"})
    EXPECT_TRUE(rules(one).denies_while_it_only_reads) << one;
  for (const char* other : {"redis+sentinel://a", "redis+cluster://a", "mysql://a,c/b",
                            "postgresql://a,c/b", "zookeeper://a", "mongodb://a", "sqlite:/a"})
    EXPECT_FALSE(rules(other).denies_while_it_only_reads) << other;
}

// Where a relay would lead, and what a client would be told; empty: there is none.
std::string through(const std::string& url) {
  const Target target = target_of(url);
  if (!target.network) return "";
  return target.network->host + ':' + std::to_string(target.network->port) + ' ' +
         target.network->url(1);
}

TEST(TargetTest, OneHostWithoutTlsIsReachedThroughARelay) {
  EXPECT_EQ(through("redis://r"), "r:6379 redis://127.0.0.1:1");
  EXPECT_EQ(through("redis://u:p@r:7/2?prefix=x"), "r:7 redis://u:p@127.0.0.1:1/2?prefix=x");
  EXPECT_EQ(through("postgresql://u@h/db?sslmode=disable"),
            "h:5432 postgresql://u@127.0.0.1:1/db?sslmode=disable");
  EXPECT_EQ(through("zookeeper://z:2182/root"), "z:2182 zookeeper://127.0.0.1:1/root");
}

TEST(TargetTest, ADriverThatLooksForServersItselfIsKeptAtThisOne) {
  EXPECT_EQ(through("mongodb://m"), "m:27017 mongodb://127.0.0.1:1/?directConnection=true");
  EXPECT_EQ(through("mongodb://m/?w=1"),
            "m:27017 mongodb://127.0.0.1:1/?w=1&directConnection=true");
}

TEST(TargetTest, WhatARelayCannotCarryIsSparedAndSaid) {
  for (const char* url : {"sqlite:/tmp/x", "postgresql://h/db", "mysql://h/db?sslmode=verify-full",
                          "rediss://h", "mongodb://a,b", "mongodb://h/?tls=true", "redis://[::1]",
                          "redis://h:seven", "redis+sentinel://h", "postgresql:///db"}) {
    EXPECT_EQ(through(url), "") << url;
    EXPECT_FALSE(target_of(url).spared.empty()) << url;
  }
}

}  // namespace
}  // namespace simba::torture
