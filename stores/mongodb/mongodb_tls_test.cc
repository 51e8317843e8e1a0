#include <fstream>

#include "stores/mongodb/mongodb_fixture.h"
#include "testing/servers/certificates.h"
#include "testing/servers/relay.h"

// Servers that speak TLS alone, and prove who they are, or do not.
namespace simba::mongodb {
namespace {

using servers::MongodbServer;
using servers::MongodbSettings;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MongodbTlsTest : public OwnMongodbTest {
 protected:
  void SetUp() override {
    OwnMongodbTest::SetUp();
    if (IsSkipped()) return;
    try {
      certificates_ = std::make_unique<servers::Certificates>();
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    certificates_->make_authority("ca");
    certificates_->make_authority("stranger");
  }
  // A server that is certified as this host: "IP:127.0.0.1".
  std::unique_ptr<MongodbServer> start(const std::string& host) const {
    certificates_->make("server", "ca", host);
    const std::string both = certificates_->certificate("server").string() + ".pem";
    std::ofstream(both) << std::ifstream(certificates_->certificate("server")).rdbuf()
                        << std::ifstream(certificates_->key("server")).rdbuf();
    MongodbSettings settings;
    settings.options = {"--tlsMode",
                        "requireTLS",
                        "--tlsCertificateKeyFile",
                        both,
                        "--tlsCAFile",
                        certificates_->certificate("ca").string(),
                        "--tlsAllowConnectionsWithoutCertificates"};
    // For the test's own commands: whoever it is.
    settings.query = "tls=true&tlsInsecure=true";
    auto server = std::make_unique<MongodbServer>(settings);
    server->start();
    return server;
  }
  std::shared_ptr<Store> open(std::uint16_t port, const std::string& more) const {
    return OwnMongodbTest::open(url_of(port, more));
  }
  std::string trusting(const std::string& authority) const {
    return "&tls=true&tlsCAFile=" + certificates_->certificate(authority).string();
  }
  // What a server says first.
  static bool is_hello(std::string_view said) {
    return said.size() > 5 && said[0] == '\x16' && said[5] == '\x02';
  }

 private:
  std::unique_ptr<servers::Certificates> certificates_;
};

TEST_F(MongodbTlsTest, AServerThatProvesWhoItIsServesAndAnotherIsToldNothing) {
  const auto server = start("IP:127.0.0.1");
  const auto store = open(server->port(), trusting("ca"));
  const auto other = open(server->port(), trusting("ca") + "&appName=other");
  const Observation held = take(*store, "L1", "a~1");
  EXPECT_EQ(renew(*store, "L1", "a~1", held.owner.token).owner.token, held.owner.token);
  std::atomic<int> wakes{0};
  const auto watch = other->watch("L1", {}, [&] { ++wakes; });
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  wakes = 0;
  release(*store, "L1", "a~1");
  EXPECT_TRUE(eventually([&] { return wakes > 0; }));
  EXPECT_NE(
      error_of([&] { take(*open(server->port(), ""), "L2", "b~1", 0, BootClock::now() + 3s); }),
      "none")
      << "in the clear";
  for (const std::string& wrong :
       {trusting("stranger"), trusting("nobody"), std::string("&tls=true")}) {
    EXPECT_THAT(error_of([&] {
                  take(*open(server->port(), wrong), "L2", "b~1", 0, BootClock::now() + 3s);
                }),
                AllOf(StartsWith("misconfigured"), HasSubstr("tlsCAFile")))
        << wrong;
  }
  EXPECT_TRUE(observe(*store, "L2").is_free());
}

TEST_F(MongodbTlsTest, AServerThatIsCertifiedAsAnotherHostIsRefused) {
  const auto server = start("DNS:elsewhere.example");
  EXPECT_THAT(error_of([&] {
                take(*open(server->port(), trusting("ca")), "L1", "a~1", 0, BootClock::now() + 3s);
              }),
              AllOf(StartsWith("misconfigured"), HasSubstr("tlsCAFile")));
}

// The driver's monitor has found the primary by then: it is the call's own connection that fails. A
// lock that waits must not end by it.
TEST_F(MongodbTlsTest, AHandshakeThatIsCutOrStallsIsTriedAgain) {
  const auto server = start("IP:127.0.0.1");
  for (const bool is_cut : {false, true}) {
    servers::Relay relay(server->port());
    std::atomic<int> greetings{0};
    relay.lie([&](std::string_view said) {
      return std::string(is_hello(said) && greetings++ > 0 ? "" : said);
    });
    MongodbOptions slow = options(url_of(relay.port(), trusting("ca")));
    slow.connect_timeout = is_cut ? 30s : 1s;
    const auto store = open_mongodb(slow);
    const std::jthread mends([&] {
      // The monitor has two connections, one to measure the way.
      if (is_cut && eventually([&] { return greetings == 3; })) relay.mend();
    });
    EXPECT_THAT(error_of([&] { take(*store, "L1", "a~1"); }),
                AllOf(StartsWith(is_cut ? "the store cannot be reached" : "the deadline passed"),
                      HasSubstr("TLS handshake")));
    relay.mend();
    EXPECT_EQ(insist([&] { return take(*store, "L1", "a~1"); }).owner.id, "a~1");
  }
}

TEST_F(MongodbTlsTest, ASilentServerCostsACallItsDeadline) {
  const auto server = start("IP:127.0.0.1");
  servers::Relay relay(server->port());
  const auto store = open(relay.port(), trusting("ca"));
  const Observation held = take(*store, "L1", "a~1");
  relay.stall();
  LocalTime began = BootClock::now();
  EXPECT_THAT(error_of([&] { renew(*store, "L1", "a~1", held.owner.token, began + 300ms); }),
              StartsWith("the deadline passed"));
  EXPECT_LT(BootClock::now() - began, 3s);
  // Silent before it has proved anything.
  const auto late = open(relay.port(), trusting("ca") + "&appName=late");
  began = BootClock::now();
  EXPECT_NE(error_of([&] { take(*late, "L1", "b~1", 0, began + 300ms); }), "none");
  EXPECT_LT(BootClock::now() - began, 3s);
  relay.mend();
  EXPECT_EQ(insist([&] { return renew(*store, "L1", "a~1", held.owner.token); }).owner.token,
            held.owner.token);
}

}  // namespace
}  // namespace simba::mongodb
