#include "simba/client.h"

#include <array>
#include <utility>

#include "core/coded.h"
#include "core/fork.h"
#include "core/session.h"
#include "core/thread_executor.h"

namespace simba::core {
namespace {

constexpr std::chrono::seconds kFarewellPatience{1};

std::shared_ptr<Store> checked(std::shared_ptr<Store> store) {
  if (!store) throw Error(Errc::kMisuse, "a client needs a store, and was given a null pointer");
  return store;
}

std::shared_ptr<Engine> make_engine(std::shared_ptr<Store> store, const ClientOptions& options) {
  auto executor = options.executor ? options.executor : make_thread_executor();
  return std::make_shared<Engine>(checked(std::move(store)), std::move(executor), options.on_event,
                                  options.log);
}

}  // namespace

Session::Session(std::shared_ptr<Store> store, ClientOptions its_options)
    : OutsideCalls(make_engine(std::move(store), its_options)), options(std::move(its_options)) {
  static_cast<void>(Timing::of(options.contend));
  engine_->open();
}

Session::~Session() {
  // In a forked child its locks may be held by threads of the parent: it is left alone.
  if (is_forked()) leave_alone(engine_);
  engine_->close(kFarewellPatience);
}

Engine& OutsideCalls::engine() const {
  if (engine_->is_forked()) {
    throw Error(
        Errc::kMisuse,
        "this process was forked after the client was made; make a new client in the child");
  }
  return *engine_;
}

void Session::log(LogLevel level, const std::string& line) const {
  if (options.log) options.log(level, line);
}

Observation OutsideCalls::observe(std::string_view mutex, milliseconds timeout) const {
  engine().store().check_mutex(mutex);
  const std::array<std::string_view, 1> names{mutex};
  Answers answers = heeded([&](Store& store) { return store.observe(names, in(timeout)); });
  if (answers.size() == 1) {
    if (const auto* seen = std::get_if<Observation>(&answers[0])) return *seen;
    if (const auto* error = std::get_if<Error>(&answers[0])) throw *error;
  }
  throw Error(Errc::kTimeout, "no answer about '" + std::string(mutex) + "'");
}

std::vector<Listed> OutsideCalls::list(std::string_view prefix, std::string_view after,
                                       std::size_t limit, milliseconds timeout) const {
  return heeded([&](Store& store) { return store.list(prefix, after, limit, in(timeout)); });
}

Observation OutsideCalls::evict(std::string_view mutex, std::string_view wire_id, Token token,
                                Eviction how, milliseconds timeout) const {
  engine().store().check_mutex(mutex);
  return heeded([&](Store& store) { return store.evict(mutex, wire_id, token, how, in(timeout)); });
}

void Session::note_call(LocalTime sent, const Error* error) const {
  if (!options.on_event) return;
  Event called;
  called.kind = Event::Kind::kCalled;
  called.duration = engine().executor().now() - sent;
  called.error = error;
  options.on_event(called);
}

}  // namespace simba::core

namespace simba::inline v0 {

Client::Client(std::shared_ptr<Store> store, ClientOptions options)
    : session_(std::make_shared<core::Session>(std::move(store), std::move(options))) {}

Client::~Client() = default;
Client::Client(const Client&) = default;
Client& Client::operator=(const Client&) = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Observation Client::observe(std::string_view mutex, milliseconds timeout) {
  return session_->told([&](auto& session) { return session.observe(mutex, timeout); });
}

std::vector<Listed> Client::list(std::string_view prefix, std::size_t limit, milliseconds timeout) {
  return list_after({}, prefix, limit, timeout);
}

std::vector<Listed> Client::list_after(std::string_view after, std::string_view prefix,
                                       std::size_t limit, milliseconds timeout) {
  return session_->told([&](auto& session) { return session.list(prefix, after, limit, timeout); });
}

Observation Client::evict(std::string_view mutex, std::string_view wire_id, Token token,
                          Eviction how, milliseconds timeout) {
  return session_->told(
      [&](auto& session) { return session.evict(mutex, wire_id, token, how, timeout); });
}

Observation Client::observe(std::string_view mutex, milliseconds timeout, std::error_code& error) {
  return core::coded(error, [&] { return observe(mutex, timeout); });
}

std::vector<Listed> Client::list(std::string_view prefix, std::size_t limit, milliseconds timeout,
                                 std::error_code& error) {
  return list_after({}, prefix, limit, timeout, error);
}

std::vector<Listed> Client::list_after(std::string_view after, std::string_view prefix,
                                       std::size_t limit, milliseconds timeout,
                                       std::error_code& error) {
  return core::coded(error, [&] { return list_after(after, prefix, limit, timeout); });
}

Observation Client::evict(std::string_view mutex, std::string_view wire_id, Token token,
                          Eviction how, milliseconds timeout, std::error_code& error) {
  return core::coded(error, [&] { return evict(mutex, wire_id, token, how, timeout); });
}

const ClientOptions& Client::options() const { return session_->options; }
Store& Client::store() { return session_->engine().store(); }

}  // namespace simba::inline v0
