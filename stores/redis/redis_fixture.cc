#include "stores/redis/redis_fixture.h"

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "stores/kit/worker.h"
#include "stores/redis/dialer.h"

namespace simba::redis {
namespace {

std::string shown(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kNil:
      return "nil";
    case Reply::Kind::kNumber:
      return std::to_string(reply.number);
    case Reply::Kind::kArray: {
      std::string all;
      for (const Reply& each : reply.items) {
        all += (&each == &reply.items.front() ? "" : "|") + shown(each);
      }
      return all;
    }
    default:
      return reply.text;
  }
}

// Stores of one process with the same options share their connections.
std::string apart(const std::string& url) {
  static std::atomic<int> count{0};
  if (url.find("client-name=") != url.npos) return url;
  return url + (url.find('?') == url.npos ? '?' : '&') + "client-name=test-" +
         std::to_string(++count);
}

}  // namespace

bool eventually(const std::function<bool()>& done, milliseconds patience) {
  const kit::StopSignal moment;
  const LocalTime until = BootClock::now() + patience;
  while (!done()) {
    if (BootClock::now() >= until) return done();
    moment.pause(2ms);
  }
  return true;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    return error.code().message() + ": " + error.what();
  }
}

Admin::Admin(const std::string& url) {
  const Dialer dialer(redis_options(url));
  const kit::StopSignal never;
  connection_ = dialer.open(nullptr, Dialer::Purpose::kSubscription, never);
}

Reply Admin::ask(const std::vector<std::string>& words) {
  Words all;
  for (const std::string& word : words) all.text(word);
  return connection_->run(Commands().add(all), soon(30s)).at(0);
}

std::string Admin::operator()(const std::vector<std::string>& words) { return shown(ask(words)); }

std::int64_t Admin::info(const std::string& name) {
  const std::string all = '\n' + ask({"INFO"}).text;
  const std::size_t at = all.find('\n' + name + ':');
  return at == all.npos ? -1 : std::stoll(all.substr(at + name.size() + 2));
}

void Admin::subscribe(const std::vector<std::string>& channels) {
  for (const std::string& channel : channels) ask({"SUBSCRIBE", channel});
}

std::string Admin::message(const std::string& channel, milliseconds patience) {
  const LocalTime until = soon(patience);
  while (true) {
    while (!messages_.empty()) {
      const Reply first = messages_.front();
      messages_.erase(messages_.begin());
      if (first.items.size() != 3 || first.items[0].text != "message") continue;
      if (channel.empty() || first.items[1].text == channel) return first.items[2].text;
    }
    if (BootClock::now() >= until) return "none";
    connection_->await(messages_, until);
  }
}

LogSink Lines::sink() {
  return [kept = kept_](LogLevel, std::string_view line) {
    const std::lock_guard lock(kept->guard);
    kept->lines.emplace_back(line);
  };
}

std::size_t Lines::count(const std::string& part) const {
  const std::lock_guard lock(kept_->guard);
  std::size_t found = 0;
  for (const std::string& line : kept_->lines) found += line.find(part) != line.npos ? 1 : 0;
  return found;
}

std::string Lines::all() const {
  const std::lock_guard lock(kept_->guard);
  std::string all;
  for (const std::string& line : kept_->lines) all += line + '\n';
  return all;
}

Observation observed(const Answer& answer) {
  if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
  if (std::holds_alternative<Blocked>(answer)) throw Error(Errc::kTimeout, "blocked");
  return std::get<Observation>(answer);
}

Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor,
                 milliseconds ttl, milliseconds transition, LocalTime deadline) {
  const Claim claim{mutex, wire_id, 0, floor, ttl, transition};
  return observed(store.contend({&claim, 1}, deadline).at(0));
}

Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  milliseconds ttl, milliseconds transition, LocalTime deadline) {
  const Claim claim{mutex, wire_id, token, 0, ttl, transition};
  return observed(store.contend({&claim, 1}, deadline).at(0));
}

void release(Store& store, std::string_view mutex, std::string_view wire_id) {
  const Claim claim{mutex, wire_id, 0, 0, 10s, 6s};
  observed(store.release({&claim, 1}, soon()).at(0));
}

Observation observe(Store& store, std::string_view mutex, LocalTime deadline) {
  return observed(store.observe({&mutex, 1}, deadline).at(0));
}

Hints::Hints(Store& store, std::string_view mutex)
    : watch_(store.watch(mutex, {}, [count = count_] { ++*count; })) {}

bool Hints::awaits_live() const {
  return eventually([&] { return watch_->is_live() && *count_ > 0; });
}

void RedisTest::SetUp() {
  try {
    server_ = std::make_unique<servers::TestServer>("redis");
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  admin_ = std::make_unique<Admin>(url());
  m = "test." + std::to_string(std::random_device{}());
}

void RedisTest::kill_client(const std::string& name, const std::string& type) {
  const std::string all = admin()({"CLIENT", "LIST", "TYPE", type});
  const std::size_t at = all.find("name=" + name);
  ASSERT_NE(at, all.npos) << all;
  const std::size_t line = all.rfind("id=", at);
  admin()({"CLIENT", "KILL", "ID", std::to_string(std::stoll(all.substr(line + 3)))});
}

void RedisTest::TearDown() {
  if (!admin_) return;
  for (const Reply& each : admin().ask({"KEYS", "simba:{" + m + "*"}).items) {
    admin()({"DEL", each.text});
  }
}

std::shared_ptr<Store> RedisTest::open(const std::string& more) {
  return open_alone(url(more), log.sink());
}

void OwnServersTest::SetUp() {
  try {
    servers::need_redis();
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
}

std::shared_ptr<Store> OwnServersTest::open(const std::string& url) {
  return open_alone(url, log.sink());
}

bool lacks_a_replica(const std::function<void(LocalTime deadline)>& call,
                     const std::string& and_says) {
  for (const milliseconds patience : {1s, 4s, 16s}) {
    const std::string said = error_of([&] { call(soon(patience)); });
    if (said.find("0 of 1 replicas") != said.npos && said.find(and_says) != said.npos) return true;
  }
  return false;
}

std::shared_ptr<Store> open_alone(const std::string& url, const LogSink& log) {
  RedisOptions options = redis_options(apart(url));
  options.log = log;
  return open_redis(options);
}

Contender::Contender(const Client& client, const std::string& mutex,
                     const ContendOptions& options) {
  service_ = std::make_unique<MutexContendService>(
      client,
      make_contender(mutex, {[counts = counts_](const MutexState&) { ++counts->acquired; },
                             [counts = counts_](const MutexState&) { ++counts->released; }}),
      options);
  service_->start();
}

Contender::~Contender() = default;

ContendOptions lease(milliseconds ttl, milliseconds transition) {
  ContendOptions options;
  options.ttl = ttl;
  options.transition = transition;
  return options;
}

}  // namespace simba::redis
