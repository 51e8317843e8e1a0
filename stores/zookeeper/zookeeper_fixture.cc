#include "stores/zookeeper/zookeeper_fixture.h"

#include <poll.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <stdexcept>

namespace simba::zookeeper {
namespace {

void discard(const char*) {}
void ignore(zhandle_t*, int, int, const char*, void*) {}

Observation seen(const Answers& answers) {
  if (const auto* error = std::get_if<Error>(&answers.at(0))) throw Error(*error);
  return std::get<Observation>(answers[0]);
}

std::string unique_name() {
  std::random_device random;
  return "t" + std::to_string(random()) + std::to_string(random());
}

}  // namespace

bool eventually(const std::function<bool()>& done, milliseconds patience) {
  const LocalTime until = BootClock::now() + patience;
  while (!done()) {
    if (BootClock::now() >= until) return done();
    ::poll(nullptr, 0, 2);
  }
  return true;
}

Raw::Raw(const std::string& servers, const std::string& user_and_password)
    : zh_(zookeeper_init2(servers.c_str(), ignore, 30'000, nullptr, nullptr, ZOO_NO_LOG_CLIENTENV,
                          discard)) {
  if (!zh_) throw std::runtime_error("zookeeper_init");
  if (!user_and_password.empty()) {
    zoo_add_auth(zh_, "digest", user_and_password.data(),
                 static_cast<int>(user_and_password.size()), nullptr, nullptr);
  }
  if (!eventually([&] { return zoo_state(zh_) == ZOO_CONNECTED_STATE; })) {
    throw std::runtime_error("no connection to " + servers);
  }
}

Raw::~Raw() { zookeeper_close(zh_); }

int Raw::create(const std::string& path, const std::string& data, int mode) {
  return zoo_create(zh_, path.c_str(), data.data(), static_cast<int>(data.size()),
                    &ZOO_OPEN_ACL_UNSAFE, mode, nullptr, 0);
}

int Raw::run(const std::string& command) {
  std::istringstream words(command);
  std::string create, path, data, entries;
  words >> create >> path >> data >> entries;
  if (create != "create" || data != "\"\"") throw std::runtime_error("not known: " + command);
  std::vector<std::string> parts;  // scheme, id, permissions, and the next one's
  std::replace(entries.begin(), entries.end(), ',', ':');
  std::istringstream all(entries);
  for (std::string part; std::getline(all, part, ':');) parts.push_back(part);
  std::vector<ACL> acl;
  for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
    constexpr std::string_view kLetters = "rwcda";  // by their bits
    int permissions = 0;
    for (const char letter : parts[i + 2]) permissions |= 1 << kLetters.find(letter);
    acl.push_back({permissions, {parts[i].data(), parts[i + 1].data()}});
  }
  const ACL_vector made{static_cast<std::int32_t>(acl.size()), acl.data()};
  return zoo_create(zh_, path.c_str(), "", 0, &made, 0, nullptr, 0);
}

int Raw::remove(const std::string& path) { return zoo_delete(zh_, path.c_str(), -1); }

int Raw::set(const std::string& path, const std::string& data) {
  return zoo_set(zh_, path.c_str(), data.data(), static_cast<int>(data.size()), -1);
}

std::vector<std::string> Raw::children(const std::string& path) {
  String_vector names{};
  std::vector<std::string> all;
  if (zoo_get_children(zh_, path.c_str(), 0, &names) != ZOK) return all;
  for (int i = 0; i < names.count; ++i) all.emplace_back(names.data[i]);
  deallocate_String_vector(&names);
  return latch_order(all);
}

bool Raw::exists(const std::string& path) { return stat(path).czxid != 0; }

Stat Raw::stat(const std::string& path) {
  Stat stat{};
  if (zoo_exists(zh_, path.c_str(), 0, &stat) != ZOK) return {};
  return stat;
}

std::string Raw::data(const std::string& path) {
  std::string buffer(1024, '\0');
  int length = static_cast<int>(buffer.size());
  if (zoo_get(zh_, path.c_str(), 0, buffer.data(), &length, nullptr) != ZOK || length < 0)
    return {};
  buffer.resize(static_cast<std::size_t>(length));
  return buffer;
}

std::vector<std::string> Raw::acl(const std::string& path) {
  ACL_vector entries{};
  Stat stat{};
  std::vector<std::string> all;
  if (zoo_get_acl(zh_, path.c_str(), &entries, &stat) != ZOK) return all;
  for (int i = 0; i < entries.count; ++i) {
    const ACL& entry = entries.data[i];
    const std::string id = entry.id.id;
    all.push_back(std::string(entry.id.scheme) + ':' + id.substr(0, id.find(':')) + ' ' +
                  std::to_string(entry.perms));
  }
  deallocate_ACL_vector(&entries);
  return all;
}

int Raw::allow(const std::string& path, int permissions) {
  char world[] = "world", anyone[] = "anyone";
  ACL entry{permissions, {world, anyone}};
  const ACL_vector all{1, &entry};
  return zoo_set_acl(zh_, path.c_str(), -1, &all);
}

void ZookeeperTest::SetUp() {
  m = unique_name();
  try {
    server_ = std::make_unique<servers::TestServer>("zookeeper");
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  given_ = zookeeper_options(server_->url());
  servers = given_.servers + given_.chroot;
}

ZookeeperOptions ZookeeperTest::options(milliseconds session_timeout) const {
  ZookeeperOptions options = given_;
  options.session_timeout = session_timeout;
  if (given_.servers.empty() || !servers.starts_with(given_.servers)) options.servers = servers;
  return options;
}

Raw& ZookeeperTest::raw() {
  if (!raw_) raw_ = std::make_unique<Raw>(servers);
  return *raw_;
}

Observation ZookeeperTest::take(Store& store, std::string_view mutex, std::string_view id,
                                milliseconds ttl, milliseconds transition, Token floor) {
  const Claim claim{mutex, id, 0, floor, ttl, transition};
  return seen(store.contend({&claim, 1}, soon()));
}

Observation ZookeeperTest::renew(Store& store, std::string_view mutex, std::string_view id,
                                 Token token) {
  const Claim claim{mutex, id, token, 0, 60s, 30s};
  return seen(store.contend({&claim, 1}, soon()));
}

void ZookeeperTest::release(Store& store, std::string_view mutex, std::string_view id,
                            Token token) {
  const Claim claim{mutex, id, token, 0, {}, {}};
  seen(store.release({&claim, 1}, soon()));
}

Observation ZookeeperTest::observe(Store& store, std::string_view mutex) {
  return seen(store.observe({&mutex, 1}, soon()));
}

std::string ZookeeperTest::error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code().message() + ": " + error.what();
  }
  return "";
}

void OwnServerTest::SetUp() {
  m = unique_name();
  try {
    servers::need_zookeeper();
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  turn_ = servers::Turn("java", kTurns);
}

void OwnServerTest::start(servers::ZooKeeperSettings settings) {
  if (settings.tick == 2s) settings.tick = 200ms;
  settings.config.try_emplace("maxSessionTimeout", "60000");
  server = std::make_unique<servers::ZooKeeperServer>(settings);
  server->start();
  servers = server->address();
}

void OwnServerTest::put_relay() { relay = std::make_unique<servers::Relay>(server->port()); }

}  // namespace simba::zookeeper
