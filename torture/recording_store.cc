#include "torture/recording_store.h"

#include <functional>
#include <utility>

namespace simba::torture {
namespace {

Call call_of(Call::Kind kind, std::string_view mutex) {
  Call call;
  call.kind = kind;
  call.mutex = hash_of(mutex);
  return call;
}

Call call_of(Call::Kind kind, const Claim& claim) {
  Call call = call_of(kind, claim.mutex);
  call.id = hash_of(claim.wire_id);
  call.token = claim.token;
  call.lease = claim.ttl + claim.transition;
  return call;
}

void read(const Observation& seen, Call& call) {
  const MutexOwner& owner = seen.owner;
  call.owner = owner.id.empty() ? 0 : hash_of(owner.id);
  call.owner_token = owner.token;
  call.left = bounded(owner.transition_at - seen.now);
  if (seen.is_free()) {
    // A lease that was over when it was told: nobody goes by it, but it was granted.
    const bool is_own = call.kind == Call::Kind::kTake && call.owner == call.id;
    call.answer = is_own ? Call::Answer::kNone : Call::Answer::kFree;
  } else {
    call.answer = owner.id.empty() ? Call::Answer::kNameless : Call::Answer::kOwned;
  }
}

void read(const Answer& answer, Call& call) {
  if (std::holds_alternative<Blocked>(answer)) call.answer = Call::Answer::kBlocked;
  const auto* seen = std::get_if<Observation>(&answer);
  if (seen == nullptr) return;
  if (call.kind == Call::Kind::kRelease) {
    call.answer = Call::Answer::kDone;
  } else {
    read(*seen, call);
  }
}

// Notes down what `ask` throws. What is no Error counts as the library takes it.
template <class Ask>
auto noting(ErrorLog& errors, const Ask& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    errors.note_call(error);
    throw;
  } catch (const std::exception& error) {
    errors.note_call({Errc::kCorrupt, error.what()});
    throw;
  }
}

// The same of what single claims were answered.
template <class Ask>
Answers noting_answers(ErrorLog& errors, const Ask& ask) {
  Answers answers = noting(errors, ask);
  for (const Answer& answer : answers) {
    if (const auto* error = std::get_if<Error>(&answer)) errors.note_call(*error);
  }
  return answers;
}

// The calls of one call to the store, noted down while it is under way.
class UnderWay {
 public:
  explicit UnderWay(CallLog& log) : log_(log) {}

  // The last one begins before the first is sent: so do all.
  void begin(std::vector<Call> calls) {
    calls_ = std::move(calls);
    const LocalTime now = BootClock::now();
    for (Call& call : calls_) {
      call.before = now;
      places_.push_back(log_.begin(call));
    }
  }
  void end(const std::function<void(std::size_t, Call&)>& read) {
    const LocalTime now = BootClock::now();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      calls_[i].after = now;
      read(i, calls_[i]);
      log_.end(places_[i], calls_[i]);
    }
  }
  // An answer that is missing says nothing.
  void end(const Answers& answers) {
    end([&answers](std::size_t i, Call& call) {
      if (i < answers.size()) torture::read(answers[i], call);
    });
  }

 private:
  CallLog& log_;
  std::vector<Call> calls_;
  std::vector<std::size_t> places_;
};

}  // namespace

std::uint64_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

Answers RecordingStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  UnderWay under_way(*log_);
  std::vector<Call> calls;
  calls.reserve(claims.size());
  for (const Claim& claim : claims)
    calls.push_back(call_of(claim.renews() ? Call::Kind::kRenew : Call::Kind::kTake, claim));
  under_way.begin(std::move(calls));
  Answers answers = noting_answers(*errors_, [&] { return store_->contend(claims, deadline); });
  under_way.end(answers);
  return answers;
}

Answers RecordingStore::release(std::span<const Claim> claims, LocalTime deadline) {
  UnderWay under_way(*log_);
  std::vector<Call> calls;
  calls.reserve(claims.size());
  for (const Claim& claim : claims) calls.push_back(call_of(Call::Kind::kRelease, claim));
  under_way.begin(std::move(calls));
  Answers answers = noting_answers(*errors_, [&] { return store_->release(claims, deadline); });
  under_way.end(answers);
  return answers;
}

Answers RecordingStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  UnderWay under_way(*log_);
  std::vector<Call> calls;
  calls.reserve(mutexes.size());
  for (const std::string_view mutex : mutexes)
    calls.push_back(call_of(Call::Kind::kObserve, mutex));
  under_way.begin(std::move(calls));
  Answers answers = noting_answers(*errors_, [&] { return store_->observe(mutexes, deadline); });
  under_way.end(answers);
  return answers;
}

Observation RecordingStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                                  Eviction how, LocalTime deadline) {
  UnderWay under_way(*log_);
  Call call =
      call_of(how == Eviction::kFreeNow ? Call::Kind::kEvictFree : Call::Kind::kEvict, mutex);
  call.id = hash_of(wire_id);
  call.token = token;
  under_way.begin({call});
  Observation seen =
      noting(*errors_, [&] { return store_->evict(mutex, wire_id, token, how, deadline); });
  under_way.end([&seen](std::size_t, Call& noted) { read(seen, noted); });
  return seen;
}

std::unique_ptr<Watch> RecordingStore::watch(std::string_view mutex, std::string_view wire_id,
                                             std::function<void()> wake) {
  return noting(*errors_, [&] { return store_->watch(mutex, wire_id, std::move(wake)); });
}

}  // namespace simba::torture
