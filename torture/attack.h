#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testing/dice.h"
#include "torture/ambush.h"
#include "torture/crowd.h"
#include "torture/heartbeat.h"
#include "torture/outcome.h"

namespace simba::torture {

// One run: clients contend, faults come as the dice say, then calm, in which every mutex must find
// an owner.
//
// Threads: one.
class Attack {
 public:
  Attack(const Plan& plan, const Target& target);

  // Looks at the clients so often, from the first fault to the last. Before run().
  void watch(nanoseconds every, std::function<void(const Crowd&)> look);

  // With a promise ("P1") it ends as soon as that one is seen broken.
  Outcome run(const std::string& until_broken = {});

 private:
  // Until then, and what has to happen meanwhile.
  void pass(LocalTime until);
  void keep_going();
  void note_end(const std::string& what);
  std::string nobody_owns() const;
  void attack(LocalTime until, const std::string& until_broken);
  void calm();
  std::vector<FaultKind> others_shuffled();
  void force(FaultKind kind);
  // False: it cannot be done just now. Lengths of up to this share of the longest.
  bool strike(FaultKind kind, double share);
  bool strike_client(FaultKind kind, double share);
  bool strike_network(FaultKind kind, double share);
  void kill_owners();
  bool kill_server();
  bool fail_over();
  void await_heir(std::size_t fault, LocalTime until);
  void end_server_fault();
  bool step_clock(nanoseconds by);
  nanoseconds harmless_step();
  bool sees_step(nanoseconds by) const;
  void lay_ambush();
  bool is_broken(const std::string& promise);
  bool is_told_late(const History& history) const;
  bool has_owners(LocalTime since) const;
  void await_owners(LocalTime since);
  std::uint64_t lost() const;
  nanoseconds span(double least, double most);  // in leases
  void later(nanoseconds span, std::function<void()> action);

  const Plan& plan_;
  const Target& target_;
  testing::Dice dice_;
  Crowd crowd_;
  Heartbeat heartbeat_;
  std::vector<FaultKind> kinds_;  // what can be done to the target
  std::vector<bool> is_struck_, is_cut_;
  std::multimap<LocalTime, std::function<void()>> agenda_;
  std::function<void(const Crowd&)> watch_;
  nanoseconds watch_every_{0};
  LocalTime watch_due_ = LocalTime::max();
  bool server_is_down_ = false;
  LocalTime last_round_{}, server_rests_until_{}, clock_rests_until_{};
  nanoseconds clock_offset_{0};
  Outcome outcome_;
  Ambush ambush_;
};

}  // namespace simba::torture
