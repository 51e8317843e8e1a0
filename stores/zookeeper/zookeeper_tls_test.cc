#include <gmock/gmock.h>

#include <fstream>

#include "stores/zookeeper/zookeeper_fixture.h"
#include "stores/zookeeper/zookeeper_options.h"
#include "testing/servers/certificates.h"
#include "testing/servers/port.h"

// A server that wants TLS of its clients, where the client library has it.
namespace simba::zookeeper {
namespace {

using ::testing::HasSubstr;

// What serves TLS, and is not in the class path of Debian's ZooKeeper.
std::string netty() {
  std::string jars;
  for (const char* part : {"common", "buffer", "transport", "resolver", "handler", "codec"}) {
    jars += std::string(jars.empty() ? "" : ":") + "/usr/share/java/netty-" + part + ".jar";
  }
  return jars;
}

class TlsTest : public OwnServerTest {
 protected:
  void SetUp() override {
    if (!has_tls()) GTEST_SKIP() << "the client library of this build has no TLS";
    OwnServerTest::SetUp();
    if (IsSkipped()) return;
    try {
      files_ = std::make_unique<servers::Certificates>();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    for (const char* authority : {"ca", "other-ca"}) files_->make_authority(authority);
    files_->make("server", "ca", "IP:127.0.0.1");
    files_->make("client", "ca", "DNS:client.example.com");
    start(wants_tls());
  }

  ZookeeperOptions options(const std::string& authority = "ca") const {
    ZookeeperOptions made;
    made.servers = "127.0.0.1:" + std::to_string(port_.number());
    made.session_timeout = 6s;
    made.tick = 200ms;
    made.tls_ca = files_->certificate(authority);
    made.tls_certificate = files_->certificate("client");
    made.tls_key = files_->key("client");
    return made;
  }

 private:
  servers::ZooKeeperSettings wants_tls() const {
    const std::string both = files_->certificate("server").string() + ".pem";
    std::ofstream out(both);
    for (const auto& file : {files_->key("server"), files_->certificate("server")}) {
      std::ifstream in(file);
      out << in.rdbuf();
    }
    servers::ZooKeeperSettings settings;
    settings.java = {"-Xbootclasspath/a:" + netty()};
    settings.config = {{"serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"},
                       {"secureClientPort", std::to_string(port_.number())},
                       {"secureClientPortAddress", "127.0.0.1"},
                       {"ssl.keyStore.location", both},
                       {"ssl.keyStore.type", "PEM"},
                       {"ssl.trustStore.location", files_->certificate("ca").string()},
                       {"ssl.trustStore.type", "PEM"},
                       {"ssl.clientAuth", "need"},
                       {"ssl.clientHostnameVerification", "false"},
                       {"ssl.hostnameVerification", "false"}};
    return settings;
  }

  const servers::Port port_;
  std::unique_ptr<servers::Certificates> files_;
};

TEST_F(TlsTest, AMutexIsTakenKeptAndHandedOn) {
  const auto store = open_alone(options()), other = open_alone(options());
  const Token token = take(*store, m, "a~1").owner.token;
  EXPECT_TRUE(owns(renew(*store, m, "a~1", token), "a~1"));
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "a~1");
  release(*store, m, "a~1");
  EXPECT_TRUE(owns(take(*other, m, "b~1"), "b~1"));
  EXPECT_EQ(raw().children(path(m)).size(), 1U);
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsNotSpokenTo) {
  const auto store = open_alone(options("other-ca"));
  const std::string_view name = m;
  EXPECT_THAT(error_of([&] {
                static_cast<void>(store->observe({&name, 1}, soon(2s)));
              }),
              HasSubstr("no server has given a session"));
}

TEST_F(TlsTest, AFileThatCannotBeReadIsNamed) {
  ZookeeperOptions missing = options();
  missing.tls_key += ".not-there";
  const auto store = open_alone(missing);
  EXPECT_TRUE(eventually([&] {
    const std::string_view name = m;
    return error_of([&] {
             static_cast<void>(store->observe({&name, 1}, soon(100ms)));
           }).find("the file of tls-key cannot be read") != std::string::npos;
  }));
}

}  // namespace
}  // namespace simba::zookeeper
