#include "testing/contract_engine.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace simba::testing {

std::uint64_t Witness::next_place() {
  static std::atomic<std::uint64_t> place{0};
  return ++place;
}

Witness::Witness(std::string mutex, Recorder& recorder, std::string label)
    : MutexContender(std::move(mutex), std::move(label)), recorder_(recorder) {}

void Witness::notify_owner(const MutexState& state) {
  recorder_.expect(inside_.fetch_add(1) == 0, "two notices of one contender at a time");
  struct Leave {
    Witness& witness;
    std::size_t at;
    ~Leave() {
      {
        const std::lock_guard lock(witness.guard_);
        witness.notices_[at].ended = next_place();
      }
      witness.inside_ -= 1;
    }
  };
  std::size_t at = 0;
  {
    const std::lock_guard lock(guard_);
    check(state);
    const auto kind = state.is_acquired()   ? Notice::Kind::kAcquired
                      : state.is_released() ? Notice::Kind::kReleased
                                            : Notice::Kind::kOther;
    at = notices_.size();
    notices_.push_back({kind, state, next_place(), 0});
  }
  const Leave leave{*this, at};
  if (state.is_acquired() && acquired) acquired(state);
  if (state.is_released() && released) released(state);
}

// Needs guard_.
void Witness::check(const MutexState& state) {
  recorder_.expect(state.is_changed(), "a notice of no change");
  if (state.is_acquired()) {
    recorder_.expect(!holds_, "on_acquired twice");
    recorder_.expect(state.term.token() != 0, "a term without a token");
    recorder_.expect(state.term.wire_id() == state.self, "the term of another wire id");
    holds_ = true;
  } else if (state.is_released()) {
    recorder_.expect(holds_, "on_released without on_acquired");
    recorder_.expect(state.loss.reason != LossReason::kNone, "a loss without a reason");
    holds_ = false;
  }
}

std::vector<Notice> Witness::notices() const {
  const std::lock_guard lock(guard_);
  return notices_;
}

std::vector<Notice> Witness::notices(Notice::Kind kind) const {
  std::vector<Notice> out;
  for (Notice& notice : notices()) {
    if (notice.kind == kind) out.push_back(std::move(notice));
  }
  return out;
}

Answers GatedStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  if (before_claims) before_claims(claims);
  Answers answers = FaultyStore::contend(claims, deadline);
  if (before_answers) before_answers(claims);
  return answers;
}

void Door::pass() {
  std::unique_lock lock(guard_);
  ++waiting_;
  opened_.wait(lock, [&] { return open_; });
  --waiting_;
}

void Door::open() {
  const std::lock_guard lock(guard_);
  open_ = true;
  opened_.notify_all();
}

ContendOptions EngineContract::calm() {
  ContendOptions options;
  options.ttl = 2s;
  options.transition = 2s;
  options.jitter = {0ms, 50ms};
  return options;
}

ContendOptions EngineContract::steady() {
  ContendOptions options;
  options.ttl = 20s;
  options.transition = 10s;
  options.renew_at = 0.05;
  options.max_backoff = 200ms;
  options.jitter = {0ms, 50ms};
  return options;
}

ContendOptions EngineContract::long_lease() {
  ContendOptions options;
  options.ttl = kLongTtl;
  options.transition = kLongTransition;
  options.jitter = {0ms, 50ms};
  return options;
}

std::function<void(const MutexState&)> EngineContract::until_lost() {
  return [](const MutexState& state) {
    const std::stop_token lost = state.term.lost();
    while (!lost.stop_requested()) std::this_thread::sleep_for(1ms);
  };
}

Client EngineContract::client_on(std::shared_ptr<Store> on, const ContendOptions& options) {
  ClientOptions all;
  all.contend = options;
  return Client(std::move(on), std::move(all));
}

Node EngineContract::node(std::string_view mutex, const ContendOptions& options,
                          std::string label) {
  Node made;
  made.store = connect_faulty();
  made.client = std::make_shared<Client>(client_on(made.store, options));
  made.witness = std::make_shared<Witness>(std::string(mutex), recorder, std::move(label));
  made.service = std::make_unique<MutexContendService>(*made.client, made.witness, options);
  return made;
}

bool EngineContract::can_push(Store& on) {
  return on.watch(name("push"), {}, [] {}) != nullptr;
}

bool EngineContract::are_renewed(const std::map<std::string, Term>& held) {
  struct Ends {
    StoreTime there;
    LocalTime here;
  };
  const auto ends = [&](const std::string& mutex, const Term& term) -> Ends {
    return {observe(*store, mutex).owner.transition_at, BootClock::now() + term.time_left()};
  };
  std::map<std::string, Ends> before;
  for (const auto& [mutex, term] : held) before[mutex] = ends(mutex, term);
  return std::ranges::all_of(held, [&](const auto& each) {
    const std::string& mutex = each.first;
    const Term& term = each.second;
    const Ends& old = before.at(mutex);
    const auto is_renewed = [&] {
      const Ends now = ends(mutex, term);
      return now.there > old.there && now.here > old.here + 2s;
    };
    return eventually([&] { return is_renewed() || !term.is_owner(); }) && term.is_owner() &&
           observe(*store, mutex).owner.token == term.token();
  });
}

void EngineContract::expect_left_free(std::string_view mutex) {
  ASSERT_TRUE(eventually([&] {
    const Observation now = observe(*store, mutex);
    return now.is_free() && now.owner.id.empty();
  })) << "'"
      << mutex << "' is not free: owner '" << observe(*store, mutex).owner.id << "'";
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(10ms);
    const Observation now = observe(*store, mutex);
    ASSERT_TRUE(now.is_free()) << "'" << now.owner.id << "' came back to own '" << mutex << "'";
  }
}

}  // namespace simba::testing
