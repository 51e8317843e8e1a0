#pragma once

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/zookeeper.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/zookeeper_store.h"
#include "testing/servers/relay.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"
#include "testing/servers/turn.h"
#include "testing/servers/zookeeper.h"

// What the tests on real servers share.
namespace simba::zookeeper {

using namespace std::chrono_literals;

// Looks again and again until `done()`; false when that took too long.
bool eventually(const std::function<bool()>& done, milliseconds patience = 60s);

// A client without anything of ours in it, to prepare and to look.
class Raw {
 public:
  explicit Raw(const std::string& servers, const std::string& user_and_password = {});
  ~Raw();
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  int create(const std::string& path, const std::string& data = {}, int mode = 0);
  // As zkCli.sh does: "create /path "" auth::cdr,world:anyone:r".
  int run(const std::string& command);
  int remove(const std::string& path);
  int set(const std::string& path, const std::string& data);
  std::vector<std::string> children(const std::string& path);  // the queue of a mutex, in order
  bool exists(const std::string& path);
  Stat stat(const std::string& path);
  std::string data(const std::string& path);
  // Who may do what: "digest:user 31".
  std::vector<std::string> acl(const std::string& path);
  // What anybody may do from here on: ZOO_PERM_READ | ...
  int allow(const std::string& path, int permissions);

 private:
  zhandle_t* zh_;
};

// Cases about one mutex. The server is the environment's, or the one all test programs share; where
// there is none the case is skipped, with the reason.
class ZookeeperTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // Options for the server of the case.
  ZookeeperOptions options(milliseconds session_timeout = 60s) const;
  // A store with a session of its own, as another process would have.
  std::shared_ptr<Store> connect() const { return open_alone(options()); }
  Raw& raw();

  static LocalTime soon(milliseconds after = 30s) { return BootClock::now() + after; }
  // Answers that must be observations; anything else throws.
  static Observation take(Store& store, std::string_view mutex, std::string_view id,
                          milliseconds ttl = 60s, milliseconds transition = 30s, Token floor = 0);
  static Observation renew(Store& store, std::string_view mutex, std::string_view id, Token token);
  static void release(Store& store, std::string_view mutex, std::string_view id, Token token = 0);
  static Observation observe(Store& store, std::string_view mutex);
  static bool owns(const Observation& seen, std::string_view id) {
    return seen.owner.is_owner(id) && seen.owner.token != 0 && !seen.is_free();
  }
  static std::string error_of(const std::function<void()>& call);
  std::string path(const std::string& of) const { return "/simba/" + of; }

  // Nobody else uses it.
  std::string m = "set in SetUp";
  std::string servers;  // host:port

 private:
  std::unique_ptr<servers::TestServer> server_;
  ZookeeperOptions given_;
  std::unique_ptr<Raw> raw_;
};

// Cases that stop, cut or configure a server of their own.
class OwnServerTest : public ZookeeperTest {
 protected:
  void SetUp() override;
  void start(servers::ZooKeeperSettings settings = {});
  // The server behind a network that can be broken.
  void put_relay();

  std::unique_ptr<servers::ZooKeeperServer> server;
  std::unique_ptr<servers::Relay> relay;

 private:
  servers::Turn turn_;
};

// How many cases with JVMs of their own run at once.
inline constexpr int kTurns = 3;

}  // namespace simba::zookeeper
