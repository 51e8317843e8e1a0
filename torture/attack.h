#pragma once

#include <functional>
#include <map>
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
  enum class Until { kEnd, kBroken };  // kBroken: ends as soon as a promise is seen broken

  Attack(const Plan& plan, const Target& target);

  // Looks at the clients so often, from the first fault to the last. Before run().
  void watch(nanoseconds every, std::function<void(const Crowd&)> look);

  Outcome run(Until until = Until::kEnd);

 private:
  // Until then, and what has to happen meanwhile.
  void pass(LocalTime until);
  void keep_going();
  void attack(LocalTime until, bool ends_when_broken);
  void calm();
  void strike();
  void strike_client(FaultKind kind);
  void strike_network(FaultKind kind);
  void kill_owners();
  void kill_server();
  void step_clock();
  void lay_ambush();
  bool is_broken() const;
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
  LocalTime server_rests_until_{}, clock_rests_until_{};
  nanoseconds clock_offset_{0};
  Outcome outcome_;
  Ambush ambush_;
};

}  // namespace simba::torture
