#pragma once

#include <array>
#include <cstdint>
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
  std::size_t node = 0;
  std::size_t mutex = 0;
  core::Goal goal = core::Goal::kKeep;
  std::string name;
  std::shared_ptr<core::Enrolled> who;  // null while its process is down
  bool told_acquired = false;           // on_acquired without on_released yet
  std::string wire_id;                  // the last one seen
  std::uint64_t attempt = 0;            // of that one
  std::shared_ptr<core::TermRecord> term;
  std::stop_token lost;  // of the term; a service takes it at once, a lock only when it is over
  bool owns = false;     // as of the last event
  bool lapsed = false;   // the term was seen to be over
  bool heard = false;    // and its stop token was requested
  World::Time lapsed_at{};
  std::uint64_t round = 0;  // of its own plans: an old plan does nothing
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
};

// One schedule of one seed: what happens (schedule.cc), and what must hold after each event of it
// (schedule_promises.cc).
//
// Threads: one.
class Schedule {
 public:
  Schedule(std::uint64_t seed, const SimOptions& options);
  SimResult run();

 private:
  // What happens.
  void add_node(std::size_t index);
  void boot(std::size_t node);
  void on_crash(std::size_t node);
  void when_calm();
  void kill_an_owner();
  void fork_a_child();
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

  // What must hold.
  void check();
  void check_actor(Actor& actor);
  void check_loss(Actor& actor);
  void note_wire_id(Actor& actor);
  void check_exclusion();
  void check_takeover();
  void check_orphans();
  void check_write(const Claim& claim, bool is_release, const Observation& before,
                   const Observation& after);
  void violate(const char* promise, const std::string& what);

  std::string mutex_name(std::size_t mutex) const { return mutex == 0 ? "report" : "Report"; }
  void tell(const std::string& line) { sim_.tell(line); }
  bool is_calm() const { return sim_.now() >= kCalmFrom; }

  const Draw draw_;
  const ContendOptions& contend_ = draw_.contend;
  const Timing timing_ = Timing::of(contend_);
  SimWorld sim_;
  std::vector<std::shared_ptr<core::Engine>> engines_;  // by node; null while it is down
  std::vector<std::unique_ptr<Actor>> actors_;
  std::array<Token, 2> highest_{};
  std::array<World::Time, 2> owned_at_{};
  std::array<World::Time, 2> orphan_since_{};
  std::array<std::string, 2> bereft_of_;  // its owner, killed in the calm
  std::set<std::string> dead_ids_;        // given up by processes that still live
  SimResult result_;
};

}  // namespace simba::testing
