#include "stores/kit/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "testing/fork.h"

namespace simba::kit::fixture {
namespace {

using Moment = std::shared_ptr<std::atomic<LocalTime>>;

ClientOptions watched(const Lines& errors, const Lines& log, const Moment& renewed) {
  ClientOptions options;
  options.log = log.sink();
  options.on_event = [write = errors.sink(), renewed](const Event& event) {
    if (event.kind == Event::Kind::kAcquired || event.kind == Event::Kind::kRenewed) {
      *renewed = BootClock::now();
    }
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
  const pid_t child = testing::fork_program();
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
    : client_(std::move(store), watched(errors_, log_, renewed_)),
      contender_(client_, "report", short_lease()) {}

void Afflicted::expect_end(const std::string& advice, const std::function<void()>& again) const {
  LocalTime believed{};  // the last time at which it was, or a little earlier
  ASSERT_TRUE(eventually(
      [&] {
        const LocalTime now = BootClock::now();
        if (!is_owner()) return true;
        believed = now;
        again();
        return false;
      },
      kLongPatience));
  const ContendOptions lease = short_lease();
  EXPECT_LE((believed - renewed_->load()) / 1ms, (lease.ttl + lease.transition) / 1ms)
      << "it was believed past its lease";
  EXPECT_TRUE(eventually([&] { return log_.count(advice) > 0; }, kLongPatience))
      << "of what to do the log has no word: " << ::testing::PrintToString(log_.all());
}

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
