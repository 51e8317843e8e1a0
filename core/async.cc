#include "simba/async.h"

#include <mutex>
#include <utility>

#include "core/hand_over.h"
#include "core/session.h"
#include "simba/contender_id.h"

namespace simba::inline v0 {
namespace {

using Phase = core::Contention::Phase;

}  // namespace

struct HeldMutex::State {
  std::shared_ptr<core::Session> session;
  std::shared_ptr<core::Enrolled> who;
};

HeldMutex::HeldMutex() = default;
HeldMutex::HeldMutex(std::shared_ptr<State> state) : state_(std::move(state)) {}
HeldMutex::~HeldMutex() { release(); }
HeldMutex::HeldMutex(HeldMutex&&) noexcept = default;
HeldMutex& HeldMutex::operator=(HeldMutex&& other) noexcept {
  release();
  state_ = std::move(other.state_);
  return *this;
}

Term HeldMutex::term() const {
  if (!state_ || state_->session->is_forked()) return {};
  return Term(state_->session->engine().term(*state_->who));
}

void HeldMutex::release() noexcept {
  const auto state = std::move(state_);
  if (state && !state->session->is_forked()) state->session->engine().finish(state->who);
}

// Alive until its callback has been given its result.
struct PendingAcquire::State : std::enable_shared_from_this<State> {
  struct GiveUp {
    std::weak_ptr<State> of;
    void operator()() const {
      if (const auto alive = of.lock()) alive->give_up();
    }
  };
  // A term that came too late to be handed over is given back, and the mutex is wanted again. Each
  // step is taken once, whatever the pokes.
  enum class Again { kNo, kFinishing, kStarting };

  State(const Client& client, std::function<void(Acquired)> its_callback)
      : shared_engine(client.session()->engine().shared_from_this()),
        handle_executor(client.options().handle_executor),
        callback(std::move(its_callback)),
        session(client.session()) {}

  static void poke(std::shared_ptr<State> alive);
  bool look();
  void finish();
  void start_again();
  void give_up();
  void deliver(Acquired acquired);
  core::Engine& engine() const { return *shared_engine; }

  const std::shared_ptr<core::Engine> shared_engine;
  const HandleExecutor handle_executor;
  std::function<void(Acquired)> callback;
  std::shared_ptr<core::Enrolled> who;
  LocalTime give_up_at = LocalTime::max();
  std::optional<std::stop_callback<GiveUp>> on_stop;

  std::mutex guard;
  std::shared_ptr<State> self;  // guarded by guard; until the result is there
  // Guarded by guard; handed over with the result. Threads of the client hold us: were it still
  // here, one of them could come to end the client, and it would outlive its last handle.
  std::shared_ptr<core::Session> session;
  std::optional<Error> trouble;  // guarded by guard; why it was given up
  Again again = Again::kNo;      // guarded by guard
  bool given_up = false;         // guarded by guard; by the user
};

// Something about the contender changed. Comes from any thread, more often than needed.
void PendingAcquire::State::poke(std::shared_ptr<State> alive) {
  if (alive->look()) return;
  // This may be a hint, and the last to hold it: what the user gave it is not let go of here.
  const std::shared_ptr<Executor> executor = alive->engine().shared_executor();
  executor->callback([last = std::move(alive)]() mutable { last.reset(); });
}

// False: nobody else needs it alive any more.
bool PendingAcquire::State::look() {
  const std::lock_guard lock(guard);
  if (!self) return false;
  const core::Engine::Snapshot now = engine().snapshot(*who);
  if (now.phase == Phase::kTrying && now.trouble && !now.trouble->is_transient()) {
    trouble = now.trouble;
    engine().executor().callback([state = self] { state->engine().give_up(state->who); });
  } else if (again == Again::kNo && now.phase == Phase::kHolding && now.term->is_in_ttl()) {
    HeldMutex::State held{std::move(session), who};
    deliver({HeldMutex(std::make_shared<HeldMutex::State>(std::move(held))), {}});
  } else if (now.phase == Phase::kHolding || now.phase == Phase::kEnding ||
             now.phase == Phase::kDraining) {
    finish();
  } else if (now.phase == Phase::kIdle && again == Again::kFinishing && !given_up) {
    start_again();
  } else if (now.phase == Phase::kIdle && again != Again::kStarting) {
    deliver({{}, trouble});
  }
  return self != nullptr;
}

// Needs the guard.
void PendingAcquire::State::finish() {
  if (again != Again::kNo) return;
  again = Again::kFinishing;
  engine().executor().callback([state = self] { state->engine().finish(state->who); });
}

// Needs the guard. Until start() has returned, to be idle is no result.
void PendingAcquire::State::start_again() {
  again = Again::kStarting;
  engine().executor().callback([state = self] {
    state->engine().start(state->who, state->give_up_at);
    bool gives_up = false;
    {
      const std::lock_guard lock(state->guard);
      state->again = Again::kNo;
      gives_up = state->given_up;
    }
    if (gives_up) state->engine().give_up(state->who);
    state->look();
  });
}

void PendingAcquire::State::give_up() {
  if (engine().is_forked()) return;
  {
    const std::lock_guard lock(guard);
    given_up = true;
  }
  engine().give_up(who);
}

// Needs the guard.
void PendingAcquire::State::deliver(Acquired acquired) {
  struct Result {
    std::shared_ptr<State> state;
    std::shared_ptr<core::Session> session;  // where nothing is held
    Acquired acquired;
  };
  const auto result =
      std::make_shared<Result>(Result{std::move(self), std::move(session), std::move(acquired)});
  // What it throws would be lost on the way, or make it run twice.
  auto run = [result]() noexcept {
    const std::shared_ptr<State> state = std::move(result->state);
    state->on_stop.reset();
    const auto give = std::move(state->callback);
    result->session.reset();  // who hears of it may end the client
    give(std::move(result->acquired));
  };
  self = nullptr;
  core::hand_over(engine().shared_executor(), handle_executor, std::move(run));
}

void PendingAcquire::cancel() {
  if (state_) state_->give_up();
}

PendingAcquire acquire_async(const Client& client, std::string mutex, AcquireOptions options,
                             std::function<void(Acquired)> callback) {
  if (!callback) {
    throw Error(Errc::kMisuse,
                "nobody would hear whether '" + mutex + "' was acquired: the callback is empty");
  }
  auto state = std::make_shared<PendingAcquire::State>(client, std::move(callback));
  core::Spec spec;
  spec.mutex = std::move(mutex);
  spec.label = options.contender_id.empty() ? ContenderIdGenerator::host().generate()
                                            : std::move(options.contender_id);
  spec.options = options.contend.value_or(client.options().contend);
  spec.goal = core::Goal::kOnce;
  spec.poke = [weak = std::weak_ptr<PendingAcquire::State>(state)] {
    if (auto alive = weak.lock()) PendingAcquire::State::poke(std::move(alive));
  };
  core::Engine& engine = state->engine();
  state->who = engine.enroll(std::move(spec));
  if (options.timeout) state->give_up_at = engine.executor().now() + bounded(*options.timeout);
  state->self = state;
  if (options.stop.stop_possible()) {
    state->on_stop.emplace(options.stop, PendingAcquire::State::GiveUp{state});
  }
  engine.start(state->who, state->give_up_at);
  if (options.stop.stop_requested()) state->give_up();
  PendingAcquire pending;
  pending.state_ = std::move(state);
  return pending;
}

}  // namespace simba::inline v0
