#include "stores/mongodb/mongodb_fixture.h"

#include <cstdlib>
#include <random>

#include "stores/kit/worker.h"

namespace simba::mongodb {

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

LogSink Lines::sink() const {
  return [kept = kept_](LogLevel, std::string_view line) {
    const std::lock_guard lock(kept->guard);
    kept->lines.emplace_back(line);
  };
}

std::vector<std::string> Lines::all() const {
  const std::lock_guard lock(kept_->guard);
  return kept_->lines;
}

std::size_t Lines::count(const std::string& part) const {
  std::size_t found = 0;
  for (const std::string& line : all()) found += line.find(part) != line.npos ? 1 : 0;
  return found;
}

Answer contend(Store& store, const Claim& claim, LocalTime deadline) {
  return store.contend({&claim, 1}, deadline).at(0);
}

Observation observed(const Answer& answer) {
  if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
  if (std::holds_alternative<Blocked>(answer)) throw Error(Errc::kTimeout, "blocked");
  return std::get<Observation>(answer);
}

Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor,
                 LocalTime deadline) {
  return observed(contend(store, {mutex, wire_id, 0, floor, 20s, 10s}, deadline));
}

Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  LocalTime deadline) {
  return observed(contend(store, {mutex, wire_id, token, 0, 20s, 10s}, deadline));
}

void release(Store& store, std::string_view mutex, std::string_view wire_id, Token token) {
  const Claim claim{mutex, wire_id, token, 0, 20s, 10s};
  observed(store.release({&claim, 1}, soon()).at(0));
}

Observation observe(Store& store, std::string_view mutex) {
  return observed(store.observe({&mutex, 1}, soon()).at(0));
}

Observation insist(const std::function<Observation()>& call) {
  Observation seen;
  const bool came = eventually(
      [&] {
        try {
          seen = call();
          return true;
        } catch (const Error& error) {
          if (!error.is_transient()) throw;
          return false;
        }
      },
      60s);
  if (!came) throw Error(Errc::kTimeout, "no answer in a minute");
  return seen;
}

void MongodbTest::SetUp() {
  try {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
    if (const char* given = std::getenv("SIMBA_TEST_MONGODB_URL")) {
      server_ = given;
      if (server_.find('?') == server_.npos) server_ += "/?";
    } else {
      shared_ = std::make_unique<servers::SharedServer>("mongodb");
      server_ = shared_->address();
    }
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  collection = "locks_" + std::to_string(std::random_device{}());
}

void MongodbTest::TearDown() {
  if (server_.empty()) return;
  try {
    command(R"({"drop": "$C"})");
  } catch (const std::runtime_error&) {  // there was none
  }
}

MongodbOptions MongodbTest::options_on(const std::string& url, const std::string& more) const {
  MongodbOptions made = mongodb_options(url + (more.empty() ? "" : "&" + more));
  made.database = database;
  made.collection = collection;
  made.log = log.sink();
  return made;
}

std::string MongodbTest::command(std::string json) const {
  if (const auto at = json.find("$C"); at != json.npos) json.replace(at, 2, collection);
  return servers::run_mongodb_command(server_, json, database);
}

std::string MongodbTest::document(const std::string& mutex) const {
  return command(R"({"find": "$C", "filter": {"_id": ")" + mutex + R"("}})");
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

ContendOptions lease(milliseconds ttl, milliseconds transition) {
  ContendOptions options;
  options.ttl = ttl;
  options.transition = transition;
  return options;
}

}  // namespace simba::mongodb
