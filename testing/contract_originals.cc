#include <deque>
#include <map>
#include <thread>

#include "simba/locker.h"
#include "testing/contract_engine.h"

// What the original got wrong first: its sixteen bugs, by number. Eleven and twelve are with the
// scheduler.
namespace simba::testing {

void link_original_cases() {}

namespace {

using OriginalContract = EngineContract;

SIMBA_CASE(OriginalContract, Original01TwoNotificationsNeverSeeTheSameBefore) {
  ContendOptions options = steady();
  options.safety_poll = 50ms;
  Node n = node(name(), options);
  const auto watcher = std::make_shared<Witness>(name(), recorder);
  MutexRetrievalService observer(client(), watcher, options);
  std::string hand = wire_id("hand");
  take(*store, name(), hand);
  n.service->start();
  observer.start();
  for (std::size_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(eventually([&] { return n.service->after_owner().id == hand; }));
    ASSERT_TRUE(eventually([&] { return observer.after_owner().id == hand; }));
    release(*store, name(), hand);
    ASSERT_TRUE(n.witness->waits_for_acquisitions(round));
    const Term term = n.service->term();
    ASSERT_TRUE(eventually([&] { return observer.after_owner().id == term.wire_id(); }));
    store->evict(name(), term.wire_id(), term.token(), Eviction::kFreeNow, soon());
    hand = wire_id("hand");
    take(*store, name(), hand);
    ASSERT_TRUE(n.witness->waits_for_releases(round));
    if (!owns(observe(*store, name()), hand)) hand = observe(*store, name()).owner.id;
    if (hand == n.service->term().wire_id()) break;  // it was quicker than the hand
  }
  n.service->stop();
  observer.stop();
  for (const auto& witness : {n.witness, watcher}) {
    std::string before;
    for (const Notice& notice : witness->notices()) {
      EXPECT_EQ(notice.state.before.id, before) << "a notice with somebody else's before";
      before = notice.state.after.id;
    }
  }
}

SIMBA_CASE(OriginalContract, Original02ASpuriousWakeUpGrantsNothing) {
  take(*store, name(), wire_id("holder"));
  const auto faulty = connect_faulty();
  SimbaLocker locker(client_on(faulty), name(), long_lease());
  std::atomic<bool> done{false};
  std::thread noise([&] {
    while (!done) {
      faulty->hint(name());
      recorder.expect(!locker.is_owner(), "woken, and owner without a grant");
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_FALSE(locker.try_lock_for(500ms));
  done = true;
  noise.join();
  EXPECT_FALSE(locker.is_owner());
}

SIMBA_CASE(OriginalContract, Original03ATimedOutAcquireStopsContendingAndTheLockerIsUsableAgain) {
  const std::string holder = wire_id("holder");
  take(*store, name(), holder);
  const auto faulty = connect_faulty();
  ContendOptions options = long_lease();
  options.safety_poll = 20ms;
  SimbaLocker locker(client_on(faulty), name(), options);
  EXPECT_FALSE(locker.try_lock_for(200ms));
  std::size_t calls = 0;
  EXPECT_TRUE(eventually([&] {
    const std::size_t before = std::exchange(calls, faulty->calls());
    std::this_thread::sleep_for(100ms);
    return before == faulty->calls();
  })) << "it goes on contending";
  release(*store, name(), holder);
  expect_left_free(name());
  EXPECT_TRUE(locker.try_lock_for(10s));
  EXPECT_TRUE(owns(observe(*store, name()), locker.term().wire_id()));
  locker.unlock();
}

SIMBA_CASE(OriginalContract, Original04AResultAfterStopNeitherRevivesNorIsForgotten) {
  const auto door = std::make_shared<Door>();  // whoever is held up may outlive the case
  ContendOptions options = long_lease();       // nothing here is free because a lease ran out
  options.call_deadline = 250ms;
  Node n = node(name(), options);
  n.store->before_answers = [door](std::span<const Claim>) { door->pass(); };
  n.service->start();
  ASSERT_TRUE(eventually([&] { return door->waiting() > 0; }));
  EXPECT_FALSE(observe(*store, name()).is_free()) << "the store has acted";
  n.service->stop();
  EXPECT_EQ(n.service->status(), Status::kInitial);
  EXPECT_TRUE(eventually([&] { return observe(*store, name()).is_free(); })) << "an orphan";
  door->open();
  expect_left_free(name());
  EXPECT_FALSE(n.service->is_owner());
  EXPECT_TRUE(n.witness->notices(Notice::Kind::kAcquired).empty());
}

SIMBA_CASE(OriginalContract, Original04AResultDuringStopIsGivenBack) {
  const auto door = std::make_shared<Door>();
  Node n = node(name(), long_lease());
  n.store->before_answers = [door](std::span<const Claim>) { door->pass(); };
  n.service->start();
  ASSERT_TRUE(eventually([&] { return door->waiting() > 0; }));
  std::thread stopper([&] { recorder.guard([&] { n.service->stop(); }); });
  EXPECT_TRUE(eventually([&] { return n.service->status() == Status::kStopping; }));
  door->open();
  stopper.join();
  EXPECT_TRUE(observe(*store, name()).is_free());
  expect_left_free(name());
  EXPECT_FALSE(n.service->is_owner());
  EXPECT_TRUE(n.witness->notices(Notice::Kind::kAcquired).empty());
}

SIMBA_CASE(OriginalContract,
           Original05AnAcquisitionAfterStopIsGivenBackAndTheNextLifeKeepsItsLease) {
  const auto door = std::make_shared<Door>();  // whoever is held up may outlive the case
  ContendOptions options = long_lease();
  options.call_deadline = 250ms;
  Node n = node(name(), options);
  n.store->before_answers =
      [door, first = std::make_shared<std::atomic<bool>>(true)](std::span<const Claim>) {
        if (first->exchange(false)) door->pass();
      };
  n.service->start();
  ASSERT_TRUE(eventually([&] { return door->waiting() > 0; }));
  n.service->stop();
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  const Term term = n.service->term();
  door->open();
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(n.service->is_owner());
    ASSERT_TRUE(owns(observe(*store, name()), term.wire_id()))
        << "the late answer released the new lease";
  }
  n.service->stop();
  EXPECT_EQ(n.witness->acquisitions(), 1u);
  expect_left_free(name());
}

SIMBA_CASE(OriginalContract, Original06WakeUpsStartNoSecondChain) {
  take(*store, name(), wire_id("holder"));
  ContendOptions options = long_lease();
  options.safety_poll = 0ms;
  Node n = node(name(), options);
  n.service->start();
  ASSERT_TRUE(eventually([&] { return n.service->status() == Status::kRunning; }));
  for (int i = 0; i < 300; ++i) {
    n.store->hint(name());
    if (i % 10 == 0) std::this_thread::sleep_for(1ms);
  }
  const auto comes_to_rest = [&] {
    const std::size_t before = n.store->calls();
    std::this_thread::sleep_for(1200ms);
    return n.store->calls() == before;
  };
  EXPECT_TRUE(eventually(comes_to_rest)) << "a chain goes on without a hint";
  n.service->stop();
  EXPECT_TRUE(eventually(comes_to_rest));
  const std::size_t calls = n.store->calls();
  n.store->hint(name());
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(n.store->calls(), calls) << "stop() left a chain behind";
}

SIMBA_CASE(OriginalContract, Original07AFailedRenewalEndsOwnershipBeforeTheNextOwnerBegins) {
  Node loser = node(name()), winner = node(name());
  loser.witness->acquired = until_lost();
  loser.service->start();
  ASSERT_TRUE(loser.witness->waits_for_acquisitions(1));
  const Term term = loser.service->term();
  winner.service->start();
  loser.store->go_down();
  ASSERT_TRUE(winner.witness->waits_for_acquisitions(1));
  EXPECT_FALSE(term.is_owner());
  EXPECT_FALSE(loser.service->is_owner());
  const LossReason why = term.loss().reason;  // a machine that is very busy stands still too
  EXPECT_TRUE(why == LossReason::kUnreachable || why == LossReason::kClockJump) << to_string(why);
  ASSERT_TRUE(loser.witness->waits_for_releases(1));
  const Notice released = loser.witness->notices(Notice::Kind::kReleased).at(0);
  const Notice acquired = winner.witness->notices(Notice::Kind::kAcquired).at(0);
  if (why != LossReason::kClockJump) {  // who stood still past its lease is told late
    EXPECT_LT(released.ended, acquired.begun) << "two owners at a time";
  }
  loser.store->heal();
  winner.service->stop();
  EXPECT_TRUE(loser.witness->waits_for_acquisitions(2)) << "it never contends again";
  loser.service->stop();
}

SIMBA_CASE(OriginalContract, Original08AnExceptionDoesNotEndTheLoop) {
  Node n = node(name(), steady());
  n.witness->acquired = [](const MutexState&) { throw std::runtime_error("on purpose"); };
  n.witness->released = [](const MutexState&) { throw 42; };
  n.store->fail_before(Error(Errc::kUnreachable, "on purpose"), 3);
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1)) << "an error of the store ended the loop";
  n.store->fail_before(Error(Errc::kUnreachable, "on purpose"), 1);
  n.store->forget();
  EXPECT_TRUE(eventually([&] { return n.store->renewals() >= 2; })) << "nobody renews any more";
  EXPECT_TRUE(n.service->is_owner());
  n.service->stop();
  EXPECT_EQ(n.witness->releases(), 1u);
  n.service->start();
  EXPECT_TRUE(n.witness->waits_for_acquisitions(2));
  n.service->stop();
  expect_left_free(name());
}

SIMBA_CASE(OriginalContract, Original09ARenewalRenewsTtlAndTransitionAndDoesNotSpin) {
  Node n = node(name(), steady());
  const LocalTime began = BootClock::now();
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  milliseconds longest{0};
  ASSERT_TRUE(eventually([&] {
    const std::size_t renewed = n.store->renewals();
    const Observation held = observe(*store, name());
    if (renewed > 0) longest = std::max(longest, held.owner.transition_at - held.now);
    return renewed >= 4;
  }));
  const auto seconds = static_cast<std::size_t>((BootClock::now() - began) / 1s);
  std::size_t renewals = 0;
  for (const Asked& asked : n.store->asked()) {
    if (!asked.is_renewal()) continue;
    ++renewals;
    EXPECT_EQ(asked.claims.at(0).ttl, steady().ttl);
    EXPECT_EQ(asked.claims.at(0).transition, steady().transition);
  }
  EXPECT_LE(renewals, 2 * seconds + 2) << "a loop without delay";
  EXPECT_GT(longest, steady().ttl + steady().transition / 4) << "the lease shrank";
  n.service->stop();
}

SIMBA_CASE(OriginalContract, Original10ALeaseExpiresLocallyWhileTheStoreIsSilent) {
  const auto door = std::make_shared<Door>();  // whoever is held up may outlive the case
  Node n = node(name());
  n.store->before_claims = [door](std::span<const Claim> claims) {
    if (claims[0].renews()) door->pass();
  };
  n.witness->acquired = until_lost();
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  const Term term = n.service->term();
  const LocalTime began = BootClock::now();
  EXPECT_TRUE(eventually([&] {
    const bool is_free = observe(*store, name()).is_free();
    if (is_free) recorder.expect(!term.is_owner(), "owner of what the store calls free");
    return !term.is_owner();
  }));
  EXPECT_LT(BootClock::now() - began, 3 * (calm().ttl + calm().transition));
  EXPECT_FALSE(term.is_in_ttl());
  EXPECT_TRUE(n.witness->waits_for_releases(1)) << "a hanging call holds up the end";
  EXPECT_TRUE(term.lost().stop_requested());
  EXPECT_EQ(term.time_left(), 0ns);
  if (term.loss().reason == LossReason::kUnreachable) {  // else it stood still before it could call
    EXPECT_GT(door->waiting(), 0) << "the call hangs still";
  }
  door->open();
  n.service->stop();
}

SIMBA_CASE(OriginalContract, Original13TheErrorOfAClaimIsNotSwallowed) {
  const auto faulty = connect_faulty();
  SimbaLocker locker(client_on(faulty), name());
  faulty->go_down(Error(Errc::kDenied, "no permission to create the row"));
  try {
    locker.lock();
    ADD_FAILURE() << "locked";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kDenied);
    EXPECT_NE(std::string(error.what()).find("no permission to create the row"), std::string::npos);
  }
  faulty->heal();
  faulty->spoil(name(), Error(Errc::kCorrupt, "this row makes no sense"));
  try {
    locker.lock();
    ADD_FAILURE() << "locked";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("this row makes no sense"), std::string::npos);
  }
  faulty->unspoil(name());
  locker.lock();
  EXPECT_TRUE(locker.is_owner());
  locker.unlock();
}

SIMBA_CASE(OriginalContract, Original14ALateLeadershipCallbackAfterStopIsNotDelivered) {
  std::mutex guard;
  std::deque<std::function<void()>> tasks;
  ClientOptions options;
  options.contend = long_lease();
  options.handle_executor = [&](std::function<void()> task) {
    const std::lock_guard lock(guard);
    tasks.push_back(std::move(task));
  };
  const auto witness = std::make_shared<Witness>(name(), recorder);
  MutexContendService service(Client(connect(), options), witness);
  service.start();
  ASSERT_TRUE(eventually([&] { return service.is_owner(); }));
  const Term term = service.term();
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    recorder.guard([&] { service.stop(30s); });
    stopped = true;
  });
  ASSERT_TRUE(eventually([&] { return term.lost().stop_requested(); }));
  while (!stopped) {
    std::function<void()> task;
    {
      const std::lock_guard lock(guard);
      if (!tasks.empty()) {
        task = std::move(tasks.front());
        tasks.pop_front();
      }
    }
    if (task) task();
    std::this_thread::sleep_for(1ms);
  }
  stopper.join();
  EXPECT_TRUE(witness->notices().empty())
      << "a term that ended before its on_acquired began has neither";
  expect_left_free(name());
}

SIMBA_CASE(OriginalContract, Original15AFailureOnACallbackThreadFailsTheTest) {
  Recorder own;
  Node n = node(name(), long_lease());
  n.witness->acquired = [&](const MutexState&) {
    own.guard([] { throw std::runtime_error("an assertion"); });
    own.expect(false, "a violation");
  };
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  n.service->stop();
  EXPECT_EQ(own.violations().size(), 2u);
}

SIMBA_CASE(OriginalContract, Original16ALateMessageDoesNotFlipTheState) {
  Node n = node(name(), long_lease());
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  const Term term = n.service->term();
  for (int i = 0; i < 200; ++i) {
    n.store->hint(name());
    ASSERT_TRUE(n.service->is_owner());
    if (i % 10 == 0) std::this_thread::sleep_for(1ms);
  }
  // Real messages too: of a loser, and of a late release of an earlier term.
  try_in_vain(*store, name(), wire_id());
  release(*store, name(), wire_id());
  std::this_thread::sleep_for(200ms);
  EXPECT_TRUE(n.service->is_owner());
  EXPECT_EQ(n.service->term().token(), term.token());
  EXPECT_EQ(n.witness->notices().size(), 1u);
  n.service->stop();
}

}  // namespace
}  // namespace simba::testing
