#include "simba/contend_service.h"

#include <optional>
#include <utility>

#include "core/bell.h"
#include "core/coded.h"
#include "core/fork.h"
#include "core/session.h"

namespace simba::inline v0 {
namespace {

using Phase = core::Contention::Phase;

// Whose callback runs on this thread: stop() must not wait for itself.
thread_local const void* inside_callback_of = nullptr;

class FunctionContender : public MutexContender {
 public:
  FunctionContender(std::string mutex, ContenderCallbacks callbacks, std::string contender_id)
      : MutexContender(std::move(mutex), std::move(contender_id)),
        callbacks_(std::move(callbacks)) {}
  void on_acquired(const MutexState& state) override {
    if (callbacks_.on_acquired) callbacks_.on_acquired(state);
  }
  void on_released(const MutexState& state) override {
    if (callbacks_.on_released) callbacks_.on_released(state);
  }

 private:
  const ContenderCallbacks callbacks_;
};

}  // namespace

const char* to_string(Status status) noexcept {
  switch (status) {
    case Status::kInitial:
      return "INITIAL";
    case Status::kStarting:
      return "STARTING";
    case Status::kRunning:
      return "RUNNING";
    case Status::kStopping:
      return "STOPPING";
  }
  return "unknown";
}

MutexContender::MutexContender(std::string mutex, std::string contender_id)
    : mutex_(std::move(mutex)), contender_id_(std::move(contender_id)) {}

void MutexContender::notify_owner(const MutexState& state) {
  if (!state.is_changed()) return;
  if (state.is_acquired()) on_acquired(state);
  if (state.is_released()) on_released(state);
}

void MutexContender::on_acquired(const MutexState&) {}
void MutexContender::on_released(const MutexState&) {}

std::shared_ptr<MutexContender> make_contender(std::string mutex, ContenderCallbacks callbacks,
                                               std::string contender_id) {
  return std::make_shared<FunctionContender>(std::move(mutex), std::move(callbacks),
                                             std::move(contender_id));
}

namespace {

template <class Retriever>
std::shared_ptr<Retriever> checked(std::shared_ptr<Retriever> retriever) {
  if (retriever) return retriever;
  throw Error(Errc::kMisuse,
              "a service needs a contender or a retriever, and was given a null pointer");
}

// Tells the user. The engine holds it, beyond the life of a service that is destroyed inside one of
// its callbacks: that one is still told of its end, and its mutex released.
struct Notifier {
  void notify(const MutexState& change) const noexcept;
  void log_change(const MutexState& change) const;

  const std::shared_ptr<MutexRetriever> retriever;
  const LogSink log;
  std::shared_ptr<core::Session> outlives;  // the service, destroyed inside its callback
};

void Notifier::notify(const MutexState& change) const noexcept {
  const void* const outer = std::exchange(inside_callback_of, this);
  log_change(change);
  try {
    retriever->notify_owner(change);
  } catch (const std::exception& error) {
    if (log)
      log(LogLevel::kError, "a callback of '" + retriever->mutex() + "' threw: " + error.what());
  } catch (...) {
    if (log) log(LogLevel::kError, "a callback of '" + retriever->mutex() + "' threw");
  }
  inside_callback_of = outer;
}

void Notifier::log_change(const MutexState& change) const {
  if (!log) return;
  const std::string& mutex = retriever->mutex();
  if (change.is_acquired()) {
    log(LogLevel::kInfo,
        change.self + " acquired '" + mutex + "', token " + std::to_string(change.term.token()));
  } else if (change.is_released()) {
    log(LogLevel::kInfo,
        change.self + " no longer owns '" + mutex + "': " + to_string(change.loss.reason));
  }
}

Status status_of(const core::Engine::Snapshot& now) {
  if (!now.is_active) return Status::kInitial;
  if (now.phase == Phase::kIdle) return Status::kStarting;  // nothing has been asked for yet
  if (now.is_stopping) return Status::kStopping;
  return now.has_answer ? Status::kRunning : Status::kStarting;
}

}  // namespace

struct MutexRetrievalService::State {
  State(const Client& client, std::shared_ptr<MutexRetriever> retriever, std::string label,
        core::Goal goal, const ContendOptions& options);

  core::Engine& engine() const { return session->engine(); }
  bool is_over() const { return engine().phase(*who) == Phase::kIdle; }
  bool is_inside_callback() const { return inside_callback_of == notifier.get(); }
  bool wait_until_over(std::uint64_t life,
                       core::Bell::Clock::time_point with_callbacks_until) const;
  [[noreturn]] void refuse(const char* what, Status status) const;

  const std::shared_ptr<core::Session> session;
  const std::shared_ptr<Notifier> notifier;
  const std::shared_ptr<core::Bell> bell = std::make_shared<core::Bell>();
  std::shared_ptr<core::Enrolled> who;
};

MutexRetrievalService::State::State(const Client& client, std::shared_ptr<MutexRetriever> retriever,
                                    std::string label, core::Goal goal,
                                    const ContendOptions& options)
    : session(client.session()),
      notifier(std::make_shared<Notifier>(
          Notifier{std::move(retriever), client.options().log, nullptr})) {
  core::Spec spec;
  spec.mutex = notifier->retriever->mutex();
  spec.label = std::move(label);
  spec.options = options;
  spec.goal = goal;
  spec.handle_executor = client.options().handle_executor;
  spec.poke = [bell = bell] { bell->ring(); };
  spec.notify = [notifier = notifier](const MutexState& change) { notifier->notify(change); };
  who = engine().enroll(std::move(spec));
}

// Of that life: somebody may start the next one before this thread wakes up. False when a callback
// still ran then, or the work was not waited for.
bool MutexRetrievalService::State::wait_until_over(
    std::uint64_t life, core::Bell::Clock::time_point with_callbacks_until) const {
  if (!engine().executor().goes_on_by_itself()) return is_over();  // nobody would end the wait
  std::optional<bool> left_work;
  const auto has_ended = [&] {
    const core::Engine::Snapshot now = engine().snapshot(*who);
    if (now.lives <= life && now.phase != Phase::kIdle) return false;
    left_work = now.left_work;
    return true;
  };
  bell->wait(core::Bell::Clock::time_point::max(), has_ended);
  const auto is_quiet = [&] {
    const core::Engine::Snapshot now = engine().snapshot(*who);
    return !now.is_telling || now.phase != Phase::kIdle;
  };
  return bell->wait(with_callbacks_until, is_quiet) && !*left_work;
}

void MutexRetrievalService::State::refuse(const char* what, Status status) const {
  throw Error(Errc::kMisuse, std::string("cannot ") + what + " the service of '" +
                                 notifier->retriever->mutex() + "' while it is " +
                                 to_string(status));
}

MutexRetrievalService::MutexRetrievalService(std::shared_ptr<State> state)
    : state_(std::move(state)) {}

MutexRetrievalService::MutexRetrievalService(const Client& client,
                                             std::shared_ptr<MutexRetriever> retriever,
                                             const ContendOptions& options)
    : state_(std::make_shared<State>(client, checked(std::move(retriever)), std::string{},
                                     core::Goal::kObserve, options)) {}

MutexRetrievalService::~MutexRetrievalService() {
  close();
  if (state_->session->is_forked()) {
    core::leave_alone(state_);
  } else if (state_->is_inside_callback()) {
    state_->notifier->outlives = state_->session;
  }
}

void MutexRetrievalService::start() {
  const Status before = status_of(state_->engine().start(state_->who));
  if (before != Status::kInitial) state_->refuse("start", before);
}

void MutexRetrievalService::stop() {
  stop(std::chrono::ceil<milliseconds>(state_->who->machine.timing().patience));
}

bool MutexRetrievalService::stop(milliseconds grace) {
  const core::Engine::Snapshot before = state_->engine().stop(state_->who, bounded(grace));
  if (!is_active(status_of(before))) state_->refuse("stop", status_of(before));
  if (state_->is_inside_callback()) return true;
  return state_->wait_until_over(before.lives, core::Bell::Clock::now() + bounded(grace));
}

bool MutexRetrievalService::stop(std::error_code& error) {
  return stop(std::chrono::ceil<milliseconds>(state_->who->machine.timing().patience), error);
}

bool MutexRetrievalService::stop(milliseconds grace, std::error_code& error) {
  return core::coded(error, [&] { return stop(grace); });
}

// Whoever stops it first, perhaps in a callback that goes on: the end of that life is waited for.
void MutexRetrievalService::close() noexcept {
  if (state_->session->is_forked()) return;
  const nanoseconds patience = state_->who->machine.timing().patience;
  const core::Engine::Snapshot before = state_->engine().stop(state_->who);
  if (state_->is_inside_callback()) return;
  state_->wait_until_over(before.lives, core::Bell::Clock::now() + patience);
}

Status MutexRetrievalService::status() const {
  return status_of(state_->engine().snapshot(*state_->who));
}
const std::shared_ptr<MutexRetriever>& MutexRetrievalService::retriever() const {
  return state_->notifier->retriever;
}
const std::string& MutexRetrievalService::mutex() const { return state_->who->mutex(); }
const ContendOptions& MutexRetrievalService::options() const {
  return state_->who->machine.options();
}
MutexState MutexRetrievalService::mutex_state() const {
  return state_->engine().state(*state_->who);
}

MutexContendService::MutexContendService(const Client& client,
                                         std::shared_ptr<MutexContender> contender)
    : MutexContendService(client, std::move(contender), client.options().contend) {}

MutexContendService::MutexContendService(const Client& client,
                                         std::shared_ptr<MutexContender> contender,
                                         const ContendOptions& options)
    : MutexRetrievalService(std::make_shared<State>(
          client, contender, checked(contender)->contender_id(), core::Goal::kKeep, options)),
      contender_(std::move(contender)) {}

Term MutexContendService::term() const {
  if (state_->session->is_forked()) return {};
  return Term(state_->engine().term(*state_->who));
}

namespace {

class ContendFactory : public MutexContendServiceFactory {
 public:
  ContendFactory(const Client& client, const ContendOptions& options)
      : client_(client), options_(options) {}
  std::unique_ptr<MutexContendService> create_mutex_contend_service(
      std::shared_ptr<MutexContender> contender) override {
    return std::make_unique<MutexContendService>(client_, std::move(contender), options_);
  }

 private:
  const Client client_;
  const ContendOptions options_;
};

class RetrievalFactory : public MutexRetrievalServiceFactory {
 public:
  RetrievalFactory(const Client& client, const ContendOptions& options)
      : client_(client), options_(options) {}
  std::unique_ptr<MutexRetrievalService> create_mutex_retrieval_service(
      std::shared_ptr<MutexRetriever> retriever) override {
    return std::make_unique<MutexRetrievalService>(client_, std::move(retriever), options_);
  }

 private:
  const Client client_;
  const ContendOptions options_;
};

}  // namespace

std::unique_ptr<MutexContendServiceFactory> make_contend_service_factory(
    const Client& client, const ContendOptions& options) {
  return std::make_unique<ContendFactory>(client, options);
}

std::unique_ptr<MutexRetrievalServiceFactory> make_retrieval_service_factory(
    const Client& client, const ContendOptions& options) {
  return std::make_unique<RetrievalFactory>(client, options);
}

}  // namespace simba::inline v0
