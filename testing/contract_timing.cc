#include <algorithm>
#include <stop_token>
#include <thread>

#include "simba/locker.h"
#include "testing/best_of.h"
#include "testing/contract_engine.h"

// How soon the next owner enters. A busy machine is late by chance, so that a bound holds for the
// best of a few rounds; where nothing has ended the lease, that lasts much longer than the bound,
// so that only what the case is about can have done it.
namespace simba::testing {

void link_timing_cases() {}

namespace {

class TimingContract : public EngineContract {
 protected:
  // What a hand-over takes, with a call of each side, where nobody has to wait for a poll.
  static constexpr nanoseconds kSoon = 3s;

  nanoseconds note(const char* what, LocalTime since) {
    const nanoseconds took = BootClock::now() - since;
    RecordProperty(what, static_cast<int>(took / 1ms));
    return took;
  }
  // The first owns, the second waits for it.
  static bool stand_in_line(Node& first, Node& second) {
    first.service->start();
    if (!first.witness->waits_for_acquisitions(1)) return false;
    second.service->start();
    return eventually([&] { return second.service->status() == Status::kRunning; });
  }
  // How long it takes after the first has begun to stop; kNever when the second does not enter.
  nanoseconds hand_over(Node& first, Node& second, const char* what) {
    const LocalTime began = BootClock::now();
    first.service->stop();
    if (!second.witness->waits_for_acquisitions(1)) return kNever;
    const nanoseconds took = note(what, began);
    second.service->stop();
    return took;
  }
  // The same of a hand-over between two who stand in line, the second without hints if so wanted.
  enum class Hints { kCome, kAreLost, kCannotCome };
  nanoseconds hand_over(const ContendOptions& options, Hints hints, const char* what);
  nanoseconds take_over_from_a_killed_owner(const ContendOptions& options);
  // No poll in between: who enters was told.
  static ContendOptions by_hints_alone() {
    ContendOptions options = long_lease();
    options.safety_poll = 0ms;
    return options;
  }
  void expect_heard_after_a_lock_gave_up(const std::string& mutex);
};

nanoseconds TimingContract::hand_over(const ContendOptions& options, Hints hints,
                                      const char* what) {
  Node first = node(name(), options), second = node(name(), options);
  if (hints == Hints::kAreLost) second.store->drop_hints();
  if (hints == Hints::kCannotCome) second.store->cannot_push();
  if (!stand_in_line(first, second)) return kNever;
  std::this_thread::sleep_for(200ms);  // it waits in earnest
  return hand_over(first, second, what);
}

SIMBA_CASE(TimingContract, AReleaseHandsOverByAHintAlone) {
  if (!can_push(*store)) GTEST_SKIP() << "this store cannot push";
  const auto round = [&] { return hand_over(by_hints_alone(), Hints::kCome, "handover_ms"); };
  EXPECT_LT(best_of(3, kSoon, round), kSoon) << "the hint was late or never came";
}

// The thread of a lock may listen itself.
SIMBA_CASE(TimingContract, AReleaseWakesALockByAHintAlone) {
  if (!can_push(*store)) GTEST_SKIP() << "this store cannot push";
  SimbaLocker first(client(by_hints_alone()), name(), by_hints_alone());
  SimbaLocker second(client(by_hints_alone()), name(), by_hints_alone());
  nanoseconds least = kNever;
  for (int round = 0; round < 3; ++round) {
    first.lock();
    std::thread waiting([&] { recorder.guard([&] { second.lock(); }); });
    std::this_thread::sleep_for(200ms);  // it waits in earnest
    const LocalTime began = BootClock::now();
    first.unlock();
    waiting.join();
    least = std::min(least, note("lock_woken_ms", began));
    second.unlock();
  }
  EXPECT_LT(least, kSoon) << "the hint was late";
}

// Of one process, a lock waits; somebody else of it comes to wait for `mutex`; then the lock gives
// up, and with it goes whoever listened for it.
void TimingContract::expect_heard_after_a_lock_gave_up(const std::string& mutex) {
  std::vector<Node> owners;
  owners.push_back(node(mutex, by_hints_alone()));
  if (mutex != name()) owners.push_back(node(name(), by_hints_alone()));
  for (Node& owner : owners) {
    owner.service->start();
    ASSERT_TRUE(owner.witness->waits_for_acquisitions(1));
  }
  const Client both = client(by_hints_alone());
  SimbaLocker lock(both, name(), by_hints_alone());
  std::jthread waiting([&](const std::stop_token& stop) {
    recorder.guard([&] { recorder.expect(!lock.lock(stop), "locked what was held"); });
  });
  std::this_thread::sleep_for(200ms);  // it waits in earnest
  const auto witness = std::make_shared<Witness>(mutex, recorder);
  MutexContendService service(both, witness, by_hints_alone());
  service.start();
  std::this_thread::sleep_for(200ms);
  waiting.request_stop();
  waiting.join();
  owners.front().service->stop();
  EXPECT_TRUE(witness->waits_for_acquisitions(1)) << "the hint never came";
  service.stop();
  if (owners.size() > 1) owners.back().service->stop();
}

SIMBA_CASE(TimingContract, AHintIsHeardAfterALockOfTheSameMutexGaveUp) {
  if (!can_push(*store)) GTEST_SKIP() << "this store cannot push";
  expect_heard_after_a_lock_gave_up(name());
}

SIMBA_CASE(TimingContract, AHintIsHeardAfterALockOfAnotherMutexGaveUp) {
  if (!can_push(*store)) GTEST_SKIP() << "this store cannot push";
  expect_heard_after_a_lock_gave_up(name("another"));
}

SIMBA_CASE(TimingContract, AReleaseHandsOverWithinASafetyPollWhenTheHintIsLost) {
  ContendOptions options = long_lease();
  options.safety_poll = 200ms;
  const auto round = [&] {
    return hand_over(options, Hints::kAreLost, "handover_without_hint_ms");
  };
  EXPECT_LT(best_of(3, kSoon, round), kSoon);
}

SIMBA_CASE(TimingContract, TheDefaultsHandOverWithinTheirSafetyPoll) {
  ContendOptions options;
  options.ttl = kLongTtl;
  options.transition = kLongTransition;
  // Five seconds; one without push.
  const bool pushes = can_push(*store);
  const nanoseconds bound = pushes ? kSoon : 1s + kSoon;
  const auto round = [&] {
    return hand_over(options, pushes ? Hints::kCome : Hints::kCannotCome, "default_handover_ms");
  };
  EXPECT_LT(best_of(5, bound, round), bound);
}

// How long after the end of the lease.
nanoseconds TimingContract::take_over_from_a_killed_owner(const ContendOptions& options) {
  Node killed = node(name(), options), heir = node(name(), options);
  if (!stand_in_line(killed, heir)) return kNever;
  killed.store->go_down();  // nothing of it reaches the store any more
  const Observation last = observe(*store, name());
  const LocalTime began = BootClock::now();
  if (!heir.witness->waits_for_acquisitions(1)) return kNever;
  const nanoseconds took = note("takeover_ms", began);
  const Observation taken = observe(*store, name());
  EXPECT_GT(taken.owner.token, last.owner.token);
  EXPECT_GT(taken.now, last.owner.transition_at) << "entered early";
  heir.service->stop();
  killed.service->stop();
  return took - (last.owner.transition_at - last.now);
}

SIMBA_CASE(TimingContract, AKilledOwnersMutexIsTakenOverAfterItsLeaseAndNotBefore) {
  ContendOptions options = calm();
  options.ttl = 4s;  // it is still its own when it is killed
  options.transition = 1s;
  options.renew_at = 0.1;
  // Where waiters queue, perhaps nobody tells them that a lease has ended: they look.
  if (queues()) options.safety_poll = 1s;
  const nanoseconds bound = options.jitter.to + 2s + (queues() ? 1s : 0s);
  const auto round = [&] { return take_over_from_a_killed_owner(options); };
  EXPECT_LT(best_of(3, bound, round), bound) << "it had not waited for the end of the lease";
}

SIMBA_CASE(TimingContract, EveryWaiterGetsItsTurn) {
  ContendOptions options = long_lease();
  options.safety_poll = 200ms;
  std::vector<Node> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(node(name(), options));
  for (Node& n : nodes) n.service->start();
  for (std::size_t turn = 0; turn < nodes.size(); ++turn) {
    Node* owner = nullptr;
    ASSERT_TRUE(eventually([&] {
      for (Node& n : nodes) {
        if (n.service->is_owner() && n.witness->acquisitions() == 1) owner = &n;
      }
      return owner != nullptr;
    })) << "turn "
        << turn;
    owner->service->stop();
  }
  for (const Node& n : nodes) EXPECT_EQ(n.witness->acquisitions(), 1u);
  expect_left_free(name());
}

}  // namespace
}  // namespace simba::testing
