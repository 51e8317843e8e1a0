#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine.h"
#include "testing/sim_world.h"
#include "testing/simulation.h"

namespace simba::testing {

inline constexpr World::Time kCalmFrom = std::chrono::seconds{75};  // no fault after that
inline constexpr World::Time kEnd = std::chrono::seconds{120};

// Somebody who contends, with what it saw of its own terms.
struct Actor {
  SimNode* process = nullptr;
  std::size_t node = 0;  // its number in the schedule
  std::size_t mutex = 0;
  core::Goal goal = core::Goal::kKeep;
  bool has_thread = false;  // a lock whose caller's thread makes its calls
  std::string name;
  std::shared_ptr<core::Enrolled> who;  // null while its process is down
  bool told_acquired = false;           // on_acquired without on_released yet
  std::string works_for;                // from on_acquired until on_released has returned
  std::string wire_id;                  // the last one seen
  std::uint64_t attempt = 0;            // of that one
  std::shared_ptr<core::TermRecord> term;
  std::stop_token lost;    // of the term; a service takes it at once, a lock only when it is over
  bool owns = false;       // as of the last event
  bool in_ttl = false;     // likewise
  LocalTime owns_until{};  // while it does: the next end, of its ttl or of its term
  World::Time ends_at{};   // that, or a little before
  bool lapsed = false;     // the term was seen to be over
  bool heard = false;      // and its stop token was requested
  World::Time lapsed_at{};
  std::uint64_t round = 0;  // of its own plans: an old plan does nothing

  // Of one with a thread.
  bool in_call = false;                           // the thread is in a call
  std::shared_ptr<core::Engine::OwnCalls> calls;  // while it waits
  LocalTime until{};                              // when it gives up

  // Of an observer.
  MutexOwner sight;                // as it was told last
  Token highest_sight = 0;         // in this life of its process
  World::Time wrong_since = kEnd;  // its state is not what stands in the store
};

// A process, its engine and its actors.
struct Host {
  SimNode* process = nullptr;
  std::shared_ptr<core::Engine> engine;  // null while it is down
  std::vector<Actor*> actors;
  std::set<std::string, std::less<>> dead_ids;  // given up in this life
  std::uint64_t life = 0;                       // how often it has crashed
  std::uint64_t steps = 0;       // of the process, when its actors were looked at last
  World::Time next_look{};       // when time alone may have changed something about them
  std::uint64_t reopenings = 0;  // of the process by then
};

// What stands in the store about a mutex, as it was looked up last.
struct Row {
  Observation seen;
  std::uint64_t changes = 0;  // of the store by then
  Host* bereaved = nullptr;   // its owner is among the dead ids of this one
  bool is_revived = false;    // likewise among the revived ones
  bool is_known = false;
};

// What a seed decides before anything happens.
struct Draw {
  Draw(std::uint64_t seed, ModelKind kind);

  Dice dice;
  ContendOptions contend;
  bool slow_callbacks = false;
  bool one_label = false;
  std::size_t mutexes = 1;
  std::optional<World::Time> fork_at;
  std::optional<World::Time> replace_at;
  bool replaces_after_grant = false;  // after the first from then on
  bool own_threads = false;           // locks make their calls on their callers' threads
  bool observers = false;
  bool clock_steps = true;             // of the server; without them clocks drift further
  bool successors_are_behind = false;  // of a forgetful server: by their clocks
  bool lasting_callbacks = false;      // of services, unlike slow ones, which only begin late
};

// One schedule of one seed: what happens (schedule.cc, and for locks that make their calls
// themselves schedule_own_thread.cc), and what must hold after each event of it
// (schedule_promises.cc, and for observers schedule_sights.cc).
//
// Threads: one.
class Schedule {
 public:
  Schedule(std::uint64_t seed, const SimOptions& options);
  SimResult run();

 private:
  // What happens.
  enum class Cast : std::uint8_t { kAll, kLocks, kObservers };
  void add_node(Cast cast);
  void add_actor(std::size_t node, std::size_t mutex, core::Goal goal, const std::string& kind);
  void boot(Host& host);
  void on_crash(Host& host);
  core::Engine& engine_of(const Actor& actor) { return *hosts_[actor.node].engine; }
  void when_calm();
  void kill_an_owner();
  void fork_a_child();
  void replace_the_store();
  void replace_after_grant();
  int look_around_in_child();
  void enroll(Actor& actor);
  void begin(Actor& actor, nanoseconds delay);
  void act(Actor& actor, nanoseconds delay, void (Schedule::*what)(Actor&));
  void start(Actor& actor);
  void stop_service(Actor& actor);
  void time_out(Actor& actor);
  void unlock(Actor& actor);
  void look(Actor& actor);
  void on_notice(Actor& actor, const MutexState& state);
  bool work(const Actor& actor, const MutexState& state);

  // On the thread of a lock.
  void lock_here(Actor& actor);
  void wait_here(Actor& actor);
  void hold_here(Actor& actor);
  void renew_here(Actor& actor);
  void unlock_here(Actor& actor);
  using Body = std::function<void(core::Engine&, const std::shared_ptr<core::Enrolled>&)>;
  bool call_here(Actor& actor, const Body& body);
  void stop_in_the_midst(const Actor& actor);

  // What must hold.
  void check();
  void look_at(Host& host);
  void check_actor(Actor& actor);
  World::Time next_look(Actor& actor) const;
  void check_loss(Actor& actor);
  void note_wire_id(Actor& actor);
  void check_replaced(Host& host);
  bool is_of_old_store(const Actor& actor) const;
  void check_exclusion();
  bool has_orphan(std::size_t mutex);
  bool is_in_reach(const Row& row, std::size_t mutex);
  static bool is_asked_for(const Host& host, std::size_t mutex);
  void note_revival(const Claim& claim);
  const Observation& row(std::size_t mutex);
  void check_takeover();
  void check_orphans();
  bool may_hold_on(const Actor& actor) const;
  World::Time hold_ends(const Actor& actor) const;
  void on_sight(Actor& actor, const MutexState& state);
  void check_observer(const Actor& actor);
  void check_sights();
  void check_write(const Claim& claim, bool is_release, const Observation& before,
                   const Observation& after);
  void check_work_of(const Claim& claim);
  void violate(const char* promise, const std::string& what);

  static const std::string& mutex_name(std::size_t mutex);
  template <class... Parts>
  void tell(const Parts&... parts) {
    sim_.tell(parts...);
  }
  bool is_calm() const { return sim_.now() >= kCalmFrom; }

  const Draw draw_;
  const ContendOptions& contend_ = draw_.contend;
  const Timing timing_ = Timing::of(contend_);
  SimWorld sim_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::array<Token, 2> highest_{};
  Token last_of_old_store_ = 0;    // of one that was replaced
  bool is_grant_awaited_ = false;  // the store is replaced then
  bool owners_change_ = false;     // since it was looked whether there are two
  std::array<bool, 2> is_held_{};  // somebody is in its ttl
  std::array<World::Time, 2> owned_at_{};
  std::set<std::string, std::less<>> revived_ids_;       // a claim arrived that nobody waited for
  std::array<World::Time, 2> orphan_since_{kEnd, kEnd};  // and could have been given back
  World::Time next_orphan_look_{};
  std::array<std::string, 2> bereft_of_;  // its owner, killed in the calm
  std::array<Row, 2> rows_;
  SimResult result_;
};

}  // namespace simba::testing
