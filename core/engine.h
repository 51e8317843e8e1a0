#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/batcher.h"
#include "core/complaints.h"
#include "core/deadlines.h"
#include "core/enrolled.h"
#include "core/owned_event.h"
#include "core/retired.h"
#include "simba/client.h"
#include "simba/event.h"
#include "simba/executor.h"
#include "simba/log.h"
#include "simba/store.h"

namespace simba::core {

class Flight;
struct Outcome;

// The shell: it performs what the machines decide. One lock guards all of it; store calls,
// callbacks and watches happen outside.
//
// Threads: any. None of its own: they are the executor's.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(std::shared_ptr<Store> store, std::shared_ptr<Executor> executor, EventHook on_event = {},
         LogSink log = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // To be called once, before anything else.
  void open();
  // Waits until who was stopped is over and what is to be given back has been tried once, at most
  // until `patience` has passed, then ends all threads.
  void close(nanoseconds patience);

  // Throws Error (kMisconfigured) for a name or options that cannot work.
  std::shared_ptr<Enrolled> enroll(Spec spec);

  struct Snapshot {
    Contention::Phase phase{};
    bool is_active = false;  // from start() on, also while nothing has been asked for yet
    bool has_answer = false;
    bool is_stopping = false;
    bool left_work = false;   // the last life did not wait for it any longer
    std::uint64_t lives = 0;  // that have ended
    bool is_telling = false;  // a callback runs or is about to
    std::shared_ptr<TermRecord> term;
    std::optional<Error> trouble;
  };
  // Nothing if it is active already. Returns how it was before.
  Snapshot start(const std::shared_ptr<Enrolled>& who, LocalTime give_up_at = LocalTime::max());
  // What a call on the caller's own thread has come to.
  enum class Inline : std::uint8_t {
    kHeld,  // and in its ttl
    kOpen,
    kOver,
    kBusy,  // its last term is not over yet: nothing was done
  };
  enum class IfRefused : std::uint8_t { kWaits, kGivesUp };
  // The caller's own thread makes the first call, if nobody here waits for the mutex already. Where
  // this is kOpen, it goes on by OwnCalls at once: its next claim may be there already.
  Inline start_inline(const std::shared_ptr<Enrolled>& who, LocalTime deadline,
                      IfRefused then = IfRefused::kWaits);
  // While this lives, its thread waits for the contender and makes the contender's claims itself:
  // one wake-up less for each. What is left at the end nobody wants any more: it is not sent.
  //
  // Threads: that one.
  class OwnCalls {
   public:
    OwnCalls(Engine& engine, std::shared_ptr<Enrolled> who);
    ~OwnCalls();
    OwnCalls(const OwnCalls&) = delete;
    OwnCalls& operator=(const OwnCalls&) = delete;

    bool is_due() const;
    // False when none is due.
    bool make(LocalTime deadline);
    // As Watch::listen: false when the store's reader listens for this contender.
    bool listen(int interrupt, LocalTime until);

   private:
    std::shared_ptr<Flight> take();

    Engine& engine_;
    const std::shared_ptr<Enrolled> who_;
  };

  // Nothing unless it is active and not stopped yet. Returns how it was before.
  Snapshot stop(const std::shared_ptr<Enrolled>& who, std::optional<nanoseconds> patience = {});
  void give_up(const std::shared_ptr<Enrolled>& who);
  // Ends a term nobody is told of: the work is done, the store is told.
  void finish(const std::shared_ptr<Enrolled>& who);
  // The same; the caller's own thread makes the call.
  Inline finish_inline(const std::shared_ptr<Enrolled>& who);
  // Extends a term now; the caller's own thread makes the call, which ends at this deadline or, if
  // that is sooner, at its own.
  Inline renew_inline(const std::shared_ptr<Enrolled>& who, LocalTime deadline);

  // Hears what the hook for events hears, all of one step at once, as long as the result lives; at
  // once, also where the hook has to wait. Quick, does not throw.
  using Listener = std::function<void(std::span<const Event>)>;
  std::shared_ptr<const Listener> listen(Listener listener);

  // The store is not the one it was: all terms are over.
  void store_was_replaced();

  Snapshot snapshot(const Enrolled& who) const;
  // The two questions that are asked often.
  Contention::Phase phase(const Enrolled& who) const;
  std::shared_ptr<TermRecord> term(const Enrolled& who) const;
  MutexState state(const Enrolled& who) const;  // as it was told last

  Store& store() { return *store_; }
  Executor& executor() { return *executor_; }
  std::shared_ptr<Executor> shared_executor() { return executor_; }
  bool is_forked() const { return fork_epoch_ != current_epoch(); }

 private:
  friend class Flight;
  struct Outbox;

  static std::uint64_t current_epoch();

  void on_alarm();
  void on_hint(const std::weak_ptr<Group>& weak);
  void on_own_hint(const std::weak_ptr<Enrolled>& weak);
  void completed(Flight& flight);
  Inline completed(const Job& job, const Outcome& outcome, LocalTime sent);
  void run_strand(const std::shared_ptr<Enrolled>& who);
  void want_hints(const std::shared_ptr<Enrolled>& who);
  static bool listens_alone(const Enrolled& who);  // needs the lock
  std::shared_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) noexcept;
  void recall(const std::shared_ptr<Flight>& flight);

  static Snapshot look_at(const Enrolled& who);  // needs the lock

  // All of these need the lock, and leave what has to happen outside it in the outbox.
  std::optional<Ask> apply(Enrolled& who, Effects&& effects, Outbox& out);
  void apply_and_submit(Enrolled& who, Effects&& effects, Outbox& out);
  void publish_term(Enrolled& who, Effects& effects, Outbox& out);
  void keep_in_sight(const std::shared_ptr<TermRecord>& abandoned);
  void tell(Enrolled& who, MutexState change, Outbox& out);
  void activate(Enrolled& who);
  void deactivate(Enrolled& who, Outbox& out);
  void place_in_line(Enrolled& who, bool began, Outbox& out);
  void refresh_own_watch(Enrolled& who, Outbox& out);
  void submit(Enrolled& who, Ask ask, Outbox& out);
  void deliver(const Job& job, const Answer& answer, LocalTime sent, Outbox& out);
  void deliver_alike(const Job& job, const Observation& seen, LocalTime sent, Outbox& out);
  void deliver_to_riders(const Job& job, const Error* error, const Observation* seen,
                         LocalTime sent, Outbox& out);
  void deliver_answer(Enrolled& who, const Job& job, std::uint64_t number, const Observation& seen,
                      LocalTime sent, Outbox& out);
  void deliver_failure(Enrolled& who, const Job& job, std::uint64_t number, const Error& error,
                       Outbox& out);
  static const Enrolled* whose_turn(const Group& group, const Riders& asked);
  void note(const Observation& seen, Group& group, Outbox& out);
  void note_call(const Outcome& outcome, std::span<const Job> jobs, LocalTime sent, Outbox& out);
  void note_trouble(const Outcome& outcome, std::span<const Job> jobs, Outbox& out);
  void note_useless_grant(Enrolled& who, const Observation& seen, Outbox& out);
  void complain(std::string_view mutex, const Error& error, Outbox& out);
  void overhear(Group& group, const Enrolled* except, const Observation& seen, LocalTime sent,
                Outbox& out);
  void wake_first(Group& group, Outbox& out);
  void wake_bereft(Outbox& out);
  void give_back(const Farewell& farewell, Outbox& out);
  void end_all_terms(Outbox& out);
  void launch(Outbox& out);
  static void hand_out(std::shared_ptr<Flight> flight, Outbox& out);
  void drop_unwanted(Batch& batch, Outbox& out);
  void keep_for_the_next(const std::shared_ptr<Group>& group, Outbox& out);
  void drop_unused_watches(Outbox& out);
  void take_watches(std::vector<std::shared_ptr<Watch>>& watches);
  void forget_unused_groups();
  void remember(const std::shared_ptr<Group>& group);
  std::shared_ptr<const Rules> rules_of(const ContendOptions& options);
  static Inline become(const Enrolled& who, LocalTime now);
  void set_alarm();
  void put_off_events(Outbox& out);
  void event(Outbox& out, Event::Kind kind, const Enrolled& who, LossReason reason = {},
             const Error* error = nullptr);
  bool is_heard() const { return on_event_ || !listeners_.empty(); }
  // Without the lock.
  template <class Decide>
  void step(Decide decide);
  void flush(Outbox& out);
  void tell_events(const Outbox& out);
  void tell_untold();
  Inline fly_inline(const std::shared_ptr<Enrolled>& who, Ask ask, Token floor, LocalTime sent,
                    LocalTime deadline);

  const std::shared_ptr<Store> store_;
  const std::shared_ptr<Executor> executor_;
  const EventHook on_event_;
  const LogSink log_;
  const std::uint64_t fork_epoch_;
  const LocalTime renewals_meet_from_;

  mutable std::mutex guard_;
  std::unordered_map<std::string, std::weak_ptr<Group>> groups_;
  // What was seen of a mutex outlives the last handle to it: a token never falls, also where the
  // store forgets. The slots go round; who was used since the last round stays for one more.
  std::vector<std::shared_ptr<Group>> remembered_;
  std::size_t next_remembered_ = 0;
  Deadlines deadlines_;
  Batcher batcher_;
  struct Lingering {
    std::shared_ptr<Group> group;
    LocalTime until;
  };
  bool is_closed_ = false;
  std::deque<Lingering> lingering_;  // whose watch nobody wants just now
  RetiredIds retired_;
  // Own until their leases end, and may have nobody any more who would end them before.
  std::vector<std::weak_ptr<TermRecord>> abandoned_;
  LocalTime replaced_at_ = LocalTime::min();  // when it was heard last that the store was
  Complaints complaints_;
  LocalTime alarm_ = LocalTime::max();
  std::size_t active_ = 0;
  std::size_t sweep_groups_at_ = 64;
  std::shared_ptr<const Rules> rules_;  // of the last who was enrolled
  std::condition_variable settled_;
  std::vector<std::weak_ptr<const Listener>> listeners_;
  std::deque<OwnedEvent> untold_;  // the hook hears of them on a thread of callbacks, in order
  bool is_telling_ = false;        // there is such a thread, or will be
};

}  // namespace simba::core
