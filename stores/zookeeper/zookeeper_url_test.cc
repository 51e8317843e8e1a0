#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "simba/zookeeper.h"
#include "stores/zookeeper/zookeeper_options.h"

namespace simba {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Acl = ZookeeperOptions::Acl;

std::string why(const std::string& url) {
  try {
    zookeeper_options(url);
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisconfigured);
    return error.what();
  }
  return "";
}

TEST(ZookeeperUrl, IsALocalServerWhenItNamesNone) {
  const ZookeeperOptions options = zookeeper_options("zookeeper:");
  EXPECT_EQ(options.servers, "127.0.0.1:2181");
  EXPECT_EQ(options.chroot, "");
  EXPECT_EQ(options.base, "/simba");
  EXPECT_EQ(options.session_timeout, 20s);
  EXPECT_EQ(options.tick, 2s);
  EXPECT_EQ(zookeeper_options("zookeeper:///app").chroot, "/app");
}

TEST(ZookeeperUrl, NamesServersWithAndWithoutPorts) {
  EXPECT_EQ(zookeeper_options("zookeeper://a").servers, "a:2181");
  EXPECT_EQ(zookeeper_options("zookeeper://a:1,b,c:3").servers, "a:1,b:2181,c:3");
  EXPECT_EQ(zookeeper_options("zookeeper://[::1]:2182,[fe80::1]").servers,
            "[::1]:2182,[fe80::1]:2181");
}

TEST(ZookeeperUrl, HoldsAChrootAndCredentials) {
  const auto options = zookeeper_options("zookeeper://me:p%40ss%3A@a:1,b:2/one/two/?acl=creator");
  EXPECT_EQ(options.servers, "a:1,b:2");
  EXPECT_EQ(options.chroot, "/one/two");
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "p@ss:");
  EXPECT_EQ(options.acl, Acl::kCreator);
}

TEST(ZookeeperUrl, ReadsItsParameters) {
  const auto options =
      zookeeper_options("zookeeper://a?session-timeout=9000&tick=500&base=/locks/x&acl=open");
  EXPECT_EQ(options.session_timeout, 9s);
  EXPECT_EQ(options.tick, 500ms);
  EXPECT_EQ(options.base, "/locks/x");
  EXPECT_EQ(options.acl, Acl::kOpen);
}

TEST(ZookeeperUrl, ReadsThePasswordFromAFile) {
  const std::string file = ::testing::TempDir() + "zookeeper-password";
  std::ofstream(file) << "s3cret\n";
  EXPECT_EQ(zookeeper_options("zookeeper://me@a?password-file=" + file).password, "s3cret");
  std::remove(file.c_str());
  EXPECT_THAT(why("zookeeper://me@a?password-file=" + file), HasSubstr("cannot be read"));
}

TEST(ZookeeperUrl, SaysWhatIsWrongAndWhatWasMeant) {
  EXPECT_THAT(why("mysql://a"), HasSubstr("begins with zookeeper:"));
  EXPECT_THAT(why("zookeeper://a?sesion-timeout=1"), HasSubstr("did you mean 'session-timeout'?"));
  EXPECT_THAT(why("zookeeper://a?tick=1"), HasSubstr("tick is a whole number from 10"));
  EXPECT_THAT(why("zookeeper://a:0"), HasSubstr("a port is a whole number from 1 to 65535"));
  EXPECT_THAT(why("zookeeper://a,,b"), HasSubstr("between two commas"));
  EXPECT_THAT(why("zookeeper://a?acl=all"), HasSubstr("acl is open, creator-read or creator"));
  EXPECT_THAT(why("zookeeper://a#x"), HasSubstr("%23"));
  EXPECT_THAT(why("zookeeper://:p@a"), HasSubstr("the user before '@' is empty"));
  EXPECT_THAT(why("zookeeper://a?base=simba"), HasSubstr("base begins with '/'"));
  EXPECT_THAT(why("zookeeper://a?base=/a//b"), HasSubstr("base"));
  EXPECT_THAT(why("zookeeper://a/b//c"), HasSubstr("chroot"));
  EXPECT_THAT(why("zookeeper://a?session-timeout=3000"), HasSubstr("at least three ticks"));
  EXPECT_THAT(why("zookeeper://a?acl=creator"), HasSubstr("needs a user"));
}

TEST(ZookeeperUrl, WithTlsIsRefusedWhereTheClientLibraryHasNoneAndNotSpokenToWithoutIt) {
  if (zookeeper::has_tls()) GTEST_SKIP() << "the client library of this build has TLS";
  for (const std::string option : {"tls", "tls-ca", "tls-cert", "tls-key"}) {
    EXPECT_THAT(why("zookeeper://a?" + option + "=x"),
                AllOf(HasSubstr(option + " asks for TLS"), HasSubstr("zookeeper_init_ssl"),
                      HasSubstr("use a tunnel")));
  }
  ZookeeperOptions options;
  options.tls_key = "key.pem";
  EXPECT_THROW(open_zookeeper(options), Error);
}

TEST(ZookeeperUrl, WithTlsNamesAllFilesAndSaysThatNoHostNameIsLookedAt) {
  if (!zookeeper::has_tls()) GTEST_SKIP() << "the client library of this build has no TLS";
  const std::string files = "tls-ca=ca.pem&tls-cert=own.pem&tls-key=own.key";
  const auto options = zookeeper_options("zookeeper://a?tls=without-host-name&" + files);
  EXPECT_EQ(options.tls_ca, "ca.pem");
  EXPECT_EQ(options.tls_certificate, "own.pem");
  EXPECT_EQ(options.tls_key, "own.key");
  EXPECT_THAT(why("zookeeper://a?" + files), HasSubstr("needs tls=without-host-name"));
  EXPECT_THAT(why("zookeeper://a?tls=without-host-name"),
              HasSubstr("tls-ca, tls-cert and tls-key"));
  EXPECT_THAT(why("zookeeper://a?tls=full&" + files), HasSubstr("not for which host"));
  EXPECT_THAT(why("zookeeper://a?tls=without-host-name&tls-ca=ca.pem"), HasSubstr("tls-key"));
  EXPECT_THAT(why("zookeeper://a?tls=without-host-name&tls-ca=a,b&tls-cert=c&tls-key=d"),
              HasSubstr("comma"));
}

TEST(ZookeeperUrl, IsNeverRepeatedWithItsPassword) {
  for (const char* url :
       {"zookeeper://me:canary@a:x", "zookeeper://me:canary@a?tick=canary",
        "zookeeper://me:canary@a?base=canary", "zookeeper://me:can%ary@a", "zookeeper://:canary@a",
        "zookeeper://me:x?canary=1@a", "zookeeper://me:x?canary-with-a-question-mark-in-it@a"}) {
    EXPECT_NE(why(url), "") << url;
    EXPECT_THAT(why(url), Not(HasSubstr("canary")));
  }
}

}  // namespace
}  // namespace simba
