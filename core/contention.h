#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simba/error.h"
#include "simba/executor.h"
#include "simba/mutex_state.h"
#include "simba/options.h"
#include "simba/store.h"

// The protocol of one contender, as a state machine without I/O: (state, event, now) -> effects.
//
//            start           granted            stop, max hold       work done
//   kIdle ---------> kTrying ---------> kHolding ---------> kEnding ---------> kReleasing --> kIdle
//                      ^  | stop, call     | revoke_at, another    | grace over   or kTrying
//                      |  | under way      v owner in the answer   v
//                      |  +--> kStopping  kDraining <--------------+
//                      +--------------------+ work done
//
// kTrying asks and waits. kHolding owns and renews. kEnding still owns and renews while the work
// returns. kDraining owns nothing any more and waits for the work. A wire id is drawn when kTrying
// begins and is never used again once kTrying or the term that came of it has ended.
namespace simba::core {

enum class Goal : std::uint8_t {
  kKeep,     // contend again after each term: leadership
  kOnce,     // one term: a lock
  kObserve,  // never contend
};

enum class CallKind : std::uint8_t { kTake, kRenew, kRelease, kObserve };

// The one store call to make now.
struct Ask {
  CallKind kind = CallKind::kTake;
  std::uint64_t number = 0;  // answers name it; an answer to another number is of an earlier life
  std::string wire_id;
  Token token = 0;
  LocalTime deadline{};
};

// A wire id that will not be used again but may stand in the store until `until`: to be released,
// and released again whenever an observation names it.
struct Retired {
  std::string wire_id;
  LocalTime until{};
};

struct Effects {
  std::optional<MutexState> change;  // to tell the user; its term is filled in by the caller
  std::optional<Loss> ended;         // the running term: request lost() now
  std::optional<Ask> ask;
  std::vector<Retired> retired;
  std::string former;    // a wire id nobody uses any more; a claim doubled on the way may revive it
  bool began = false;    // a term began
  bool over = false;     // the lifecycle has ended: kIdle
  bool useless = false;  // the grants of this store are again and again too short to be held
};

struct TermTimes {
  Token token = 0;
  LocalTime began{};
  LocalTime sent{};  // s: before the last answered claim was sent
  LocalTime ttl_end{};
  LocalTime revoke_at{};
};

// What a contender goes by. Contenders with the same options share it.
struct Rules {
  // Throws Error (kMisconfigured) for options that cannot work.
  Rules(const ContendOptions& chosen, LocalTime meet_from)
      : options(chosen), timing(Timing::of(chosen)), renewals_meet_from(meet_from) {}

  const ContendOptions options;
  const Timing timing;
  // Renewals fall due at this moment and each quarter of their period after it, so that those of
  // terms that began at different times go out together.
  const LocalTime renewals_meet_from;
};

// Threads: none of its own; calls must be serialized.
class Contention {
 public:
  enum class Phase : std::uint8_t {
    kIdle,
    kTrying,
    kHolding,
    kEnding,
    kDraining,
    kReleasing,
    kStopping
  };

  // `queues`: the store keeps a queue of waiters.
  Contention(std::string label, std::shared_ptr<const Rules> rules, bool queues,
             Executor& executor);

  // An attempt is given up at `give_up_at`.
  Effects start(Goal goal, LocalTime now, LocalTime give_up_at = LocalTime::max());
  // Ends the lifecycle in order: the work returns, then the store is told. `over` says when; with
  // the work it is patient that long, and with the store one call deadline longer: what may stand
  // there then is retired.
  Effects stop(LocalTime now) { return stop(now, timing_.patience); }
  Effects stop(LocalTime now, nanoseconds patience);
  // Ends an attempt at once, whatever is under way; what it may have left is retired. Ignored
  // unless trying.
  Effects give_up(LocalTime now);
  // What the user did with the term of this wire id has returned.
  Effects work_done(const std::string& wire_id, LocalTime now);
  // The owner wants its lease extended now. Ignored unless holding; a call under way does it.
  Effects renew(LocalTime now);
  // Something may have changed: ask sooner. Never more than that.
  Effects wake(LocalTime now);
  Effects timer(LocalTime now);
  // `sent` is the moment before the claim went out.
  Effects answered(std::uint64_t number, const Observation& seen, LocalTime sent, LocalTime now);
  // The question found the mutex free, but it is another one's turn.
  Effects passed_over(std::uint64_t number, LocalTime now);
  Effects failed(std::uint64_t number, Errc code, LocalTime now);
  // Somebody in this process was told that the store is another one now.
  Effects replaced(LocalTime now);
  // Somebody was told that the term is over before what these effects made of it could be shown.
  void lapse(Effects& effects);
  // What somebody else in this process was answered about the same mutex.
  Effects overheard(const Observation& seen, LocalTime sent, LocalTime now);
  // Nobody wants to be told of changes: none are made.
  void tell_nobody() { tells_ = false; }
  // Whether hints can be expected: decides how often to ask without one.
  void set_pushed(bool pushed) { pushed_ = pushed; }

  // When timer() wants to be called; LocalTime::max() for never.
  LocalTime next_timer() const;

  Phase phase() const { return phase_; }
  Goal goal() const { return goal_; }
  bool is_waiting() const { return phase_ == Phase::kTrying && goal_ != Goal::kObserve; }
  bool heeds_hints() const { return phase_ == Phase::kTrying && has_asked_; }
  bool has_answer() const { return has_answer_; }  // in this lifecycle
  bool is_stopping() const { return stop_; }
  bool left_work() const { return left_work_; }  // the last stop did not wait for it any longer
  // Whether an answer to that question still means something.
  bool awaits(std::uint64_t number) const {
    return call_ && call_->number == number && !call_->stale;
  }
  const std::string& wire_id() const { return wire_id_; }
  std::uint64_t attempt() const { return attempt_; }  // its number: one for each wire id
  const std::string& label() const { return label_; }
  const std::optional<TermTimes>& term() const { return term_; }  // of wire_id()
  // The last known, where somebody is told.
  const MutexOwner& owner() const { return owner_ ? *owner_ : MutexOwner::none(); }
  const ContendOptions& options() const { return options_; }
  const Timing& timing() const { return timing_; }

 private:
  static constexpr LocalTime kNever = LocalTime::max();
  // A retired id is remembered for this many leases: a claim may be late by one, and last another.
  static constexpr int kMemory = 2;

  struct Call {
    CallKind kind;
    std::uint64_t number;
    LocalTime overdue;
    bool stale = false;  // its attempt or term is over: the answer means nothing
  };

  void begin_attempt(LocalTime due);
  void drive(Effects& effects, LocalTime now);
  void abandon_attempt(Effects& effects, LocalTime now);
  bool waits_for_store() const { return phase_ == Phase::kStopping || phase_ == Phase::kReleasing; }
  void fail(Effects& effects, Errc code, LocalTime now);
  void issue(Effects& effects, LocalTime now);
  void expire(Effects& effects, LocalTime now);
  void end_attempt(Effects& effects, LocalTime now);
  void hold(Effects& effects, const Observation& seen, LocalTime sent, LocalTime now);
  void extend(const Observation& seen, LocalTime sent);
  LocalTime renewal_after(LocalTime sent) const;
  void end(Effects& effects, LocalTime now, nanoseconds patience);
  void lose(Effects& effects, Loss loss, const MutexOwner& after);
  void after_term(Effects& effects, LocalTime now);
  void answered_try(Effects& effects, CallKind kind, const Observation& seen, LocalTime sent,
                    LocalTime now);
  void answered_renewal(Effects& effects, const Observation& seen, LocalTime sent, LocalTime now);
  void wait(const Observation& seen, LocalTime now);
  void note_other(Effects& effects, const Observation& seen);
  void note_owner(Effects& effects, const MutexOwner& owner, const std::string& self);
  bool is_old_news(LocalTime sent) const;
  bool is_granted(const Observation& seen) const;
  nanoseconds believed_for(const Observation& seen) const;
  nanoseconds used_for(const Observation& seen) const;
  bool is_queued() const;
  nanoseconds scaled(nanoseconds span) const;
  milliseconds poll() const;
  nanoseconds pause() const;
  void draw_pause();
  milliseconds free_pause() const;
  milliseconds turn_of_others() const;
  nanoseconds backoff();
  LossReason why_expired(LocalTime now) const;

  const std::string label_;
  const std::shared_ptr<const Rules> rules_;
  const ContendOptions& options_ = rules_->options;
  const Timing& timing_ = rules_->timing;
  Executor& executor_;  // for its randomness alone
  const bool queues_;

  Phase phase_ = Phase::kIdle;
  Goal goal_ = Goal::kKeep;
  bool stop_ = false;
  bool left_work_ = false;
  bool pushed_ = false;
  bool tells_ = true;
  bool has_answer_ = false;
  LocalTime stop_by_ = LocalTime::max();  // whatever the store does

  // The attempt: from its first claim until it is given up or its term has ended.
  std::string wire_id_;
  std::uint64_t attempt_ = 0;
  bool has_asked_ = false;     // until then hints do not hurry it
  bool leaves_trace_ = false;  // the store may know the wire id although nobody told us so
  bool woken_ = false;         // while a call was under way
  CallKind due_kind_ = CallKind::kTake;
  LocalTime give_up_at_ = LocalTime::max();
  LocalTime due_ = LocalTime::max();
  std::optional<Call> call_;
  std::uint64_t last_number_ = 0;
  unsigned failures_ = 0;
  unsigned useless_grants_ = 0;          // one after the other
  unsigned free_looks_ = 0;              // of an observer, one after the other
  unsigned refusals_ = 0;                // of this attempt
  nanoseconds pause_{};                  // drawn at the last of them
  std::optional<std::uint64_t> jitter_;  // of the next take

  std::optional<TermTimes> term_;
  LocalTime grace_end_ = LocalTime::max();
  std::unique_ptr<MutexOwner> owner_;  // null: nobody, or nobody is told
  LocalTime heard_at_{};               // when that was answered, or overheard; in whatever life
};

}  // namespace simba::core
