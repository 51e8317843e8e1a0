#include "stores/kit/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace simba::kit::fixture {
namespace {

ClientOptions with_errors_in(const Lines& lines) {
  ClientOptions options;
  options.on_event = [write = lines.sink()](const Event& event) {
    if (event.error == nullptr) return;
    write(LogLevel::kWarning, event.error->code().message() + ": " + event.error->what());
  };
  return options;
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

Observation take(Store& store, std::string_view mutex, std::string_view wire_id, Token floor) {
  return observed(contend(store, {mutex, wire_id, 0, floor, 10s, 6s}));
}

Observation renew(Store& store, std::string_view mutex, std::string_view wire_id, Token token,
                  milliseconds ttl, milliseconds transition) {
  return observed(contend(store, {mutex, wire_id, token, 0, ttl, transition}));
}

void release(Store& store, std::string_view mutex, std::string_view wire_id, Token token) {
  const Claim claim{mutex, wire_id, token, 0, 10s, 6s};
  observed(store.release({&claim, 1}, soon()).at(0));
}

Observation observe(Store& store, std::string_view mutex) {
  return observed(store.observe({&mutex, 1}, soon()).at(0));
}

bool can_take(Store& store, std::string_view mutex) {
  Observation seen;
  return error_of([&] { seen = take(store, mutex, "a~1"); }) == "none" && seen.owner.id == "a~1";
}

void expect_fork_safe(std::shared_ptr<Store> store) {
  const auto watch = store->watch("report", {}, [] {});
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  const Token token = take(*store, "report", "a~1").owner.token;
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = error_of([&] { take(*store, "report", "b~1"); });
    store.reset();  // the destructor must do no harm
    _exit(error.find("forked") != error.npos ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner.id, "a~1");
  EXPECT_TRUE(watch->is_live());
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

bool Contender::is_renewed() const {
  const Term term = service_->term();
  const auto end = [&] { return BootClock::now() + term.time_left(); };
  const LocalTime before = end();
  return eventually([&] { return !term.is_owner() || end() > before + 500ms; }) && term.is_owner();
}

Afflicted::Afflicted(std::shared_ptr<Store> store)
    : client_(std::move(store), with_errors_in(errors_)),
      contender_(client_, "report", short_lease()) {}

ContendOptions lease(milliseconds ttl, milliseconds transition) {
  ContendOptions options;
  options.ttl = ttl;
  options.transition = transition;
  return options;
}

ContendOptions short_lease() { return lease(2s, 1s); }

ContendOptions steady_lease() {
  ContendOptions options = lease(20s, 10s);
  options.renew_at = 0.05;
  return options;
}

}  // namespace simba::kit::fixture
