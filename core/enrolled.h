#pragma once

#include <array>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contention.h"
#include "core/deadlines.h"
#include "core/strand.h"
#include "core/term_record.h"
#include "simba/client.h"
#include "simba/store.h"

namespace simba::core {

class Enrolled;
class Flight;

struct Spec {
  std::string mutex;
  std::string label;
  ContendOptions options;
  Goal goal = Goal::kKeep;
  // Told of every change, one at a time, in order, on the strand. Without it nothing is told, and
  // the end of the work is said by Engine::finish.
  std::function<void(const MutexState&)> notify;
  HandleExecutor handle_executor;  // where `notify` runs; empty: threads of ours
  // Something about this contender changed. Code of ours, quick, outside every lock.
  std::function<void()> poke;
};

// Who asked, and under which number.
using Riders = std::vector<std::pair<std::shared_ptr<Enrolled>, std::uint64_t>>;

// Contenders in order of arrival. Who leaves leaves a node behind for the next who joins, so that a
// lock that comes and goes allocates none.
class Line {
 public:
  using Place = std::list<Enrolled*>::iterator;

  Place join(Enrolled& who) {
    if (spare_.empty()) spare_.push_back(nullptr);
    spare_.front() = &who;
    line_.splice(line_.end(), spare_);
    return std::prev(line_.end());
  }
  void leave(Place place) {
    if (spare_.empty()) {
      spare_.splice(spare_.end(), line_, place);
    } else {
      line_.erase(place);
    }
  }
  bool empty() const { return line_.empty(); }
  std::size_t size() const { return line_.size(); }
  Enrolled* front() const { return line_.front(); }
  auto begin() const { return line_.begin(); }
  auto end() const { return line_.end(); }

 private:
  std::list<Enrolled*> line_, spare_;
};

// All that is known of one mutex in this process.
struct Group {
  explicit Group(std::string name) : mutex(std::move(name)) {}
  const std::string mutex;
  Line members;  // active ones
  Line waiters;  // who waits, longest first
  std::shared_ptr<Watch> watch;
  std::size_t watching = 0;                   // members that want hints
  LocalTime unwatched_at = LocalTime::min();  // since when nobody does
  bool lingers = false;                       // its watch is kept a while for the next one
  Token highest = 0;                          // token seen
  LocalTime polled_until = LocalTime::min();  // a question about it is under way
  // Wire ids out of use. A claim that was doubled on the way may bring one of them back to life.
  std::array<std::string, 8> former;
  std::size_t next_former = 0;
  Riders riders;           // share its answer
  std::size_t untold = 0;  // of its events in Engine::untold_, and the one that is told from there
  // Of Engine::remembered_.
  bool is_remembered = false, is_recent = false;
};

// Who is told of the changes of one contender, and what is still to be told. A lock has none.
struct Audience {
  const std::function<void(const MutexState&)> notify;
  const HandleExecutor handle_executor;
  Strand strand{};
  MutexState state = MutexState::none();  // the last change
};

// One contender or observer, as the engine knows it. Everything in it is guarded by the engine.
class Enrolled : public Timed, public std::enable_shared_from_this<Enrolled> {
 public:
  Enrolled(Spec spec, std::shared_ptr<Group> group, std::shared_ptr<const Rules> rules,
           const StoreTraits& traits, Executor& executor);

  const std::string& mutex() const { return group->mutex; }

  const Goal goal;
  bool left_work = false;                    // the last of its lives did not wait for it any longer
  const std::function<void()> poke;          // as in Spec
  const std::unique_ptr<Audience> audience;  // null: nobody is told
  const std::shared_ptr<Group> group;
  Contention machine;
  std::shared_ptr<TermRecord> term;  // the running or the last one
  std::optional<Error> trouble;      // of the last failed call; cleared by an answer
  std::uint64_t lives = 0;           // that have ended

 private:
  friend class Engine;
  std::shared_ptr<Enrolled> self_;  // while active
  Line::Place member_at_, waiter_at_;
  bool is_waiter_ = false;
  bool wants_hints_ = false;
  bool makes_calls_ = false;        // a thread that waits for it does
  std::shared_ptr<Flight> handed_;  // for that thread
  // A store that queues: the watch under its own wire id, and which attempt it is for.
  std::shared_ptr<Watch> own_watch_;
  std::uint64_t watched_attempt_ = 0;
};

}  // namespace simba::core
