#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "simba/export.h"

namespace simba::inline v0 {

// When the leader's work runs.
struct SIMBA_EXPORT ScheduleConfig {
  enum class Strategy {
    kFixedRate,   // every period; a late run starts at once, what was missed meanwhile is skipped
    kFixedDelay,  // a period after the last run has ended
  };
  enum class Missed { kSkip, kCatchUp };

  Strategy strategy = Strategy::kFixedRate;
  milliseconds initial_delay{0};  // at each acquisition
  milliseconds period{1000};
  Missed missed = Missed::kSkip;

  static ScheduleConfig rate(milliseconds initial_delay, milliseconds period) {
    return {Strategy::kFixedRate, initial_delay, period, Missed::kSkip};
  }
  static ScheduleConfig delay(milliseconds initial_delay, milliseconds period) {
    return {Strategy::kFixedDelay, initial_delay, period, Missed::kSkip};
  }
};

// Work that runs on the leader only.
//
// Runs do not overlap, here or across the fleet: one begins only while is_in_ttl(), and leadership
// is given up only after the running one has returned. Where the leadership is lost under a run,
// its stop token is requested: one that does not return before the lease has ended may overlap the
// next leader's. An exception in one run is logged and does not end the schedule.
//
// Threads: any. start() and stop() as in MutexContendService.
class SIMBA_EXPORT Scheduler {
 public:
  using Work = std::function<void(const Term& term)>;

  Scheduler(const Client& client, std::string mutex, const ScheduleConfig& schedule, Work work);
  Scheduler(const Client& client, std::string mutex, const ScheduleConfig& schedule, Work work,
            const ContendOptions& options,
            std::string contender_id = ContenderIdGenerator::host().generate());
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void start();
  // Waits for the running work, for the grace at most; false when it gave up: the work still runs,
  // the lease is not released and runs out.
  bool stop();
  bool stop(milliseconds grace);
  // The same with an error code instead of an exception, and false then.
  bool stop(std::error_code& error);
  bool stop(milliseconds grace, std::error_code& error);

  Status status() const;
  bool is_owner() const;
  std::uint64_t runs() const;
  std::uint64_t missed() const;  // ticks skipped because an earlier run took too long
  std::uint64_t failures() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace simba::inline v0
