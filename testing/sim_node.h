#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simba/client.h"
#include "simba/executor.h"
#include "simba/store.h"
#include "simba/testing/world.h"
#include "simba/time.h"

namespace simba::testing {

class OwnCall;
class SimWorld;

// A clock that starts anywhere and runs a little too fast or too slow.
struct SimClock {
  nanoseconds offset{};
  double rate = 1.0;

  LocalTime at(World::Time when) const {
    return LocalTime{offset + nanoseconds{static_cast<nanoseconds::rep>(
                                  static_cast<double>(when.count()) * rate)}};
  }
  // The first true time at which this clock shows at least `local`.
  World::Time when(LocalTime local) const;
};

// How badly a network treats calls just now; each share is a probability per call.
struct Weather {
  nanoseconds latency_from{milliseconds{1} / 10};
  nanoseconds latency_to{milliseconds{3}};
  double lost_requests = 0;
  double lost_replies = 0;
  double slow = 0;     // one way takes up to `slowest`
  double doubled = 0;  // the request arrives again, up to `slowest` later
  double hanging = 0;  // the driver ignores its deadline
  double stopped =
      0;  // the process stands still while the answer is on its way, up to `longest_stop`
  nanoseconds longest_stop{};
  double slow_callbacks = 0;
  nanoseconds slowest{};
  nanoseconds slowest_callback{};
  double lost_hints = 0;
  double forged_hints = 0;

  // From here on, until it is told otherwise.
  void hold_off() { lost_requests = lost_replies = slow = hanging = stopped = 0; }
  // Every call arrives, once or twice, and is answered soon.
  bool is_fair() const {
    return lost_requests == 0 && lost_replies == 0 && slow == 0 && hanging == 0 && stopped == 0;
  }
};

// One process, with a clock of its own, that can be paused, killed and cut off. Made by
// SimWorld::add_node.
//
//   boot --- runs --- pause ... resume --- runs --- crash          boot --- ...
//                     what falls due       at once, in order       with nothing but its program
//                     is held
//
// Threads: that of its world.
class SimNode {
 public:
  // What the process does when it boots. What it returns is the memory of the process: it lasts
  // until the crash, and is never destroyed, because a process that is killed runs no destructors.
  using Program = std::function<std::shared_ptr<void>(SimNode&)>;

  SimNode(SimWorld& sim, std::string name, SimClock clock);
  ~SimNode();
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  const std::string& name() const { return name_; }
  // Boots it with this program, now and after every crash.
  void run(Program program);

  // --- its way to the server ---

  // A client on the model server and on virtual time. `options.executor` is replaced.
  Client client(ClientOptions options = {});
  // The two of which it is made. An executor serves one client.
  std::shared_ptr<Store> connect();
  std::shared_ptr<Executor> make_executor();

  // While this lives, whoever made it is a thread of the process: the next claim or release that a
  // client makes on its caller's thread takes its time. The world goes on meanwhile, in the midst
  // of the event in which this is. It returns when its answer has come or is not waited for any
  // more; also when the process has crashed: nothing that is done then reaches anybody.
  class OwnThread {
   public:
    explicit OwnThread(SimNode& node) : is_here_(node.own_thread_) { *is_here_ = true; }
    ~OwnThread() { *is_here_ = false; }
    OwnThread(const OwnThread&) = delete;
    OwnThread& operator=(const OwnThread&) = delete;

   private:
    const std::shared_ptr<bool> is_here_;
  };

  // In a callback: it lasts until this is true, while the process lives and does not stand still.
  // The world goes on meanwhile, in the midst of the callback. Of several that last, in whatever
  // process, the one that began last returns first. False: the process has crashed, or the run is
  // over.
  bool last_until(const std::function<bool()>& is_over);

  // --- its time ---

  const SimClock& clock() const { return clock_; }
  // What its clock shows.
  LocalTime now() const {
    if (shown_at_ != world_.now()) {
      shown_at_ = world_.now();
      shown_ = clock_.at(shown_at_);
    }
    return shown_;
  }
  // Something this process does later: not while it is paused, not after it has crashed.
  using Task = testing::Task<48>;
  void post(nanoseconds delay, Task task);

  // --- what befalls it. Nothing happens where there is nothing to do. ---

  void boot();
  void crash();
  void pause();
  void resume();
  void cut_off();    // its calls and their answers are lost
  void reconnect();  // no longer

  bool is_up() const { return is_up_; }
  bool is_paused() const { return is_paused_; }
  bool is_cut() const { return is_cut_; }
  // How often it was told that the store it had opened is another one now, and opened that.
  std::uint64_t reopenings() const { return reopenings_; }
  // When it was booted or resumed last.
  World::Time running_since() const { return running_since_; }
  // How much it has done: what is the same as before has not changed anything of it.
  std::uint64_t steps() const { return steps_; }

 private:
  class SimExecutor;
  struct Held {
    const SimExecutor* owner;
    Task task;
  };

  template <typename Body>
  void post(nanoseconds delay, const SimExecutor* owner, Body body);
  template <typename Body>
  void run_task(std::uint64_t life, const SimExecutor* owner, Body& body);
  void carry_hint(const std::function<void()>& hint);
  void carry_call(const std::shared_ptr<StoreCall>& call, const SimExecutor* owner);
  Answers wait_for(const std::shared_ptr<OwnCall>& call);
  void time_out(std::shared_ptr<StoreCall> call, const SimExecutor* owner, World::Time patience);
  nanoseconds one_way();
  void tell(const Event& event) const;
  void end_life();
  void reopen();

  SimWorld& sim_;
  World& world_;
  const std::string name_;
  const SimClock clock_;
  Program program_;
  std::shared_ptr<void> memory_;                         // what the program returned
  std::vector<std::shared_ptr<SimExecutor>> executors_;  // of this life
  std::uint64_t life_ = 0;
  const std::shared_ptr<bool> own_thread_ = std::make_shared<bool>(false);
  bool is_up_ = false;
  bool is_paused_ = false;
  bool is_cut_ = false;
  World::Time running_since_{};
  std::uint64_t opened_ = 0;  // which of the stores that stood there, one after the other
  std::uint64_t reopenings_ = 0;
  std::uint64_t steps_ = 0;
  // What its clock showed when it was read last; it is read often.
  mutable World::Time shown_at_ = World::Time::min();
  mutable LocalTime shown_{};
  std::vector<Held> held_;  // until it is resumed
};

}  // namespace simba::testing
