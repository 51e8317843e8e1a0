#include <atomic>
#include <functional>
#include <thread>

#include "testing/contract_case.h"

// Claims, one by one: what simba/store.h says, to the letter.
namespace simba::testing {

void link_call_cases() {}

namespace {

SIMBA_CASE(CallContract, AFreeMutexIsTaken) {
  const Observation before = observe(*store, m);
  EXPECT_EQ(before.owner.id, "");
  EXPECT_TRUE(before.is_free());
  const Observation after = take(*store, m, a, 20s, 10s);
  EXPECT_EQ(after.owner.id, a);
  EXPECT_NE(after.owner.token, 0u);
  EXPECT_FALSE(after.is_free());
  const milliseconds lease = after.owner.transition_at - after.now;
  EXPECT_GT(lease, 25s) << "the lease is ttl and transition";
  EXPECT_LE(lease, 30s) << "nobody gets more than was asked for";
  if (after.owner.ttl_at) {
    EXPECT_LE(*after.owner.ttl_at - after.now, 20s);
    EXPECT_GT(*after.owner.ttl_at - after.now, 15s);
  }
  if (after.owner.acquired_at) {
    EXPECT_LE(*after.owner.acquired_at, after.now);
  }
  EXPECT_TRUE(owns(observe(*store, m), a));
}

SIMBA_CASE(CallContract, EveryConnectionSeesTheSameOwner) {
  const Token token = take(*store, m, a).owner.token;
  for (int i = 0; i < 3; ++i) {
    const Observation elsewhere = observe(*connect(), m);
    EXPECT_TRUE(owns(elsewhere, a));
    EXPECT_EQ(elsewhere.owner.token, token);
  }
}

SIMBA_CASE(CallContract, AHeldMutexIsNotTakenByAnother) {
  const Observation held = take(*store, m, a);
  const auto other = connect();
  const Observation refused = try_in_vain(*other, m, b);
  EXPECT_EQ(refused.owner.id, a) << "the answer names the owner";
  EXPECT_EQ(refused.owner.token, held.owner.token);
  const Observation after = observe(*store, m);
  EXPECT_EQ(after.owner.token, held.owner.token);
  EXPECT_LE(after.owner.transition_at, held.owner.transition_at + 50ms) << "a stranger extended it";
}

SIMBA_CASE(CallContract, ARepeatedTakeOfTheSameWireIdKeepsItsToken) {
  const Observation first = take(*store, m, a, 10s, 5s);
  const Observation again = take(*connect(), m, a, 40s, 20s);
  EXPECT_TRUE(owns(again, a));
  EXPECT_EQ(again.owner.token, first.owner.token);
  EXPECT_GT(again.owner.transition_at - again.now, 50s) << "a new lease";
}

SIMBA_CASE(CallContract, ARenewalKeepsTheTokenAndExtendsTheLease) {
  const Observation first = take(*store, m, a, 10s, 5s);
  const Observation renewed = renew(*connect(), m, a, first.owner.token, 40s, 20s);
  EXPECT_TRUE(owns(renewed, a));
  EXPECT_EQ(renewed.owner.token, first.owner.token);
  EXPECT_GT(renewed.owner.transition_at - renewed.now, 50s);
  EXPECT_LE(renewed.owner.transition_at - renewed.now, 60s);
  EXPECT_GT(observe(*store, m).owner.transition_at, first.owner.transition_at);
}

SIMBA_CASE(CallContract, ARenewalNeverCreates) {
  const Observation answer = renew(*store, m, a, 7);
  EXPECT_FALSE(owns(answer, a));
  EXPECT_TRUE(observe(*store, m).is_free());
  EXPECT_TRUE(owns(take(*store, m, b), b));
}

SIMBA_CASE(CallContract, ARenewalNeverRetakesWhatHasExpired) {
  const Token token = take(*store, m, a, kShortTtl, kShortTransition).owner.token;
  ASSERT_TRUE(eventually([&] { return observe(*store, m).is_free(); }));
  EXPECT_FALSE(owns(renew(*store, m, a, token), a));
  EXPECT_TRUE(observe(*store, m).is_free());
}

SIMBA_CASE(CallContract, ALateRenewalAfterAReleaseChangesNothing) {
  const Token token = take(*store, m, a).owner.token;
  release(*store, m, a, token);
  EXPECT_FALSE(owns(renew(*store, m, a, token), a));
  EXPECT_TRUE(observe(*store, m).is_free());
  const Observation next = take(*store, m, b);
  ASSERT_TRUE(owns(next, b));
  EXPECT_EQ(renew(*store, m, a, token).owner.id, b);
  EXPECT_EQ(observe(*store, m).owner.token, next.owner.token);
}

SIMBA_CASE(CallContract, ARenewalNeedsTheTokenOfTheTerm) {
  const Observation held = take(*store, m, a, 20s, 10s);
  for (const Token wrong : {held.owner.token - 1, held.owner.token + 1}) {
    if (wrong == 0) continue;
    renew(*store, m, a, wrong, 60s, 60s);
    const Observation after = observe(*store, m);
    EXPECT_EQ(after.owner.token, held.owner.token);
    EXPECT_LE(after.owner.transition_at, held.owner.transition_at + 50ms)
        << "renewed by token " << wrong;
  }
}

SIMBA_CASE(CallContract, ARenewalNeedsTheWireIdOfTheTerm) {
  const Observation held = take(*store, m, a, 20s, 10s);
  EXPECT_FALSE(owns(renew(*store, m, b, held.owner.token, 60s, 60s), b));
  const Observation after = observe(*store, m);
  EXPECT_EQ(after.owner.id, a);
  EXPECT_LE(after.owner.transition_at, held.owner.transition_at + 50ms);
}

SIMBA_CASE(CallContract, AReleaseFreesTheMutex) {
  const Token token = take(*store, m, a).owner.token;
  release(*connect(), m, a, token);
  const Observation after = observe(*store, m);
  EXPECT_TRUE(after.is_free());
  EXPECT_EQ(after.owner.id, "");
  EXPECT_TRUE(owns(take(*store, m, b), b));
}

SIMBA_CASE(CallContract, AReleaseWithoutATokenGoesByTheWireId) {
  take(*store, m, a);
  release(*store, m, a);
  EXPECT_TRUE(observe(*store, m).is_free());
}

SIMBA_CASE(CallContract, AReleaseByANonOwnerChangesNothing) {
  const Observation held = take(*store, m, a);
  release(*store, m, b, held.owner.token);
  release(*store, m, b);
  release(*store, name("nobody-ever-took-it"), b);
  EXPECT_TRUE(owns(observe(*store, m), a));
  EXPECT_EQ(observe(*store, m).owner.token, held.owner.token);
}

SIMBA_CASE(CallContract, ALateReleaseOfAnEarlierTermChangesNothing) {
  const Token early = take(*store, m, a).owner.token;
  release(*store, m, a, early);
  const Observation held = take(*store, m, b);
  release(*store, m, a, early);
  release(*store, m, a);
  EXPECT_TRUE(owns(observe(*store, m), b));
  EXPECT_EQ(observe(*store, m).owner.token, held.owner.token);
}

SIMBA_CASE(CallContract, ALateRenewalOfAnEarlierTermChangesNothing) {
  const Token early = take(*store, m, a, kShortTtl, kShortTransition).owner.token;
  const Observation held = take_when_free(*store, m, b);
  EXPECT_EQ(renew(*store, m, a, early, 90s, 90s).owner.id, b);
  const Observation after = observe(*store, m);
  EXPECT_TRUE(owns(after, b));
  EXPECT_EQ(after.owner.token, held.owner.token);
  EXPECT_LE(after.owner.transition_at, held.owner.transition_at + 50ms);
}

// The store's clock in each answer is exact, however slow the test.
SIMBA_CASE(CallContract, NobodyEntersBeforeTheTransitionEnds) {
  const Observation held = take(*store, m, a, kShortTtl, kShortTransition);
  std::vector<Observation> refusals;
  const Observation next = take_when_free(*connect(), m, b, &refusals);
  EXPECT_GT(next.now, held.owner.transition_at) << "entered early";
  EXPECT_GT(next.owner.token, held.owner.token);
  for (const Observation& refusal : refusals) {
    EXPECT_EQ(refusal.owner.id, a);
    EXPECT_FALSE(refusal.is_free()) << "free, and not given";
  }
}

SIMBA_CASE(CallContract, ATransitionOfZeroIsALease) {
  const Observation held = take(*store, m, a, kShortTtl, 0ms);
  EXPECT_LE(held.owner.transition_at - held.now, kShortTtl);
  EXPECT_GT(take_when_free(*store, m, b).now, held.owner.transition_at);
}

SIMBA_CASE(CallContract, AnExpiredTermOfTheSameWireIdIsANewTerm) {
  const Token early = take(*store, m, a, kShortTtl, kShortTransition).owner.token;
  ASSERT_TRUE(eventually([&] { return observe(*store, m).is_free(); }));
  EXPECT_GT(take(*store, m, a).owner.token, early);
}

SIMBA_CASE(CallContract, TokensGrowOverReleasesExpiriesEvictionsAndReconnects) {
  Token last = 0;
  for (int round = 0; round < 12; ++round) {
    const auto fresh = connect();
    const std::string id = wire_id();
    const bool expires = round % 4 == 1;
    const Observation held = expires ? take(*fresh, m, id, 50ms, 50ms) : take(*fresh, m, id);
    ASSERT_EQ(held.owner.id, id) << "round " << round;
    EXPECT_GT(held.owner.token, last) << "round " << round;
    last = held.owner.token;
    if (round % 4 == 0) release(*fresh, m, id, last);
    if (round % 4 == 2) fresh->evict(m, id, last, Eviction::kFreeNow, soon());
    if (round % 4 == 3) release(*fresh, m, id);
    ASSERT_TRUE(eventually([&] { return observe(*store, m).is_free(); })) << "round " << round;
  }
}

SIMBA_CASE(CallContract, ANewTokenIsAboveTheFloor) {
  const Token first = take(*store, m, a).owner.token;
  release(*store, m, a, first);
  const Token floor = first + 1'000'000;
  Observation held;
  try {
    held = take(*store, m, b, kLongTtl, kLongTransition, floor);
  } catch (const Error& error) {
    // A store whose servers count by themselves: it is not the one that gave the token.
    EXPECT_EQ(error.errc(), Errc::kReplaced) << error.what();
    release(*store, m, b);
    EXPECT_TRUE(observe(*store, m).is_free());
    return;
  }
  EXPECT_GT(held.owner.token, floor);
  EXPECT_EQ(renew(*store, m, b, held.owner.token).owner.token, held.owner.token);
  release(*store, m, b, held.owner.token);
  EXPECT_GT(take(*store, m, a).owner.token, held.owner.token) << "and stays above it";
}

SIMBA_CASE(CallContract, AFloorDoesNotChangeARunningTerm) {
  const Token token = take(*store, m, a).owner.token;
  EXPECT_EQ(take(*store, m, a, kLongTtl, kLongTransition, token + 1000).owner.token, token);
}

SIMBA_CASE(CallContract, ADeadlineInThePastIsAnsweredOrRefusedButNotWaitedFor) {
  const LocalTime began = BootClock::now();
  const LocalTime past = began - 1s;
  const Claim claim{m, a, 0, 0, kLongTtl, kLongTransition};
  const std::string_view view = m;
  const auto all = std::vector<std::function<void()>>{
      [&] {
        static_cast<void>(store->contend({&claim, 1}, past));
      },
      [&] {
        static_cast<void>(store->release({&claim, 1}, past));
      },
      [&] {
        static_cast<void>(store->observe({&view, 1}, past));
      },
      [&] { static_cast<void>(store->list(prefix(), {}, 10, past)); },
      [&] { static_cast<void>(store->evict(m, a, 1, Eviction::kFreeNow, past)); },
  };
  for (const auto& call : all) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_TRUE(error.is_transient()) << error.what();
    }
  }
  EXPECT_LT(BootClock::now() - began, 15s);
}

SIMBA_CASE(CallContract, OfManyWhoClaimAtOnceOneIsGranted) {
  constexpr int kClaimants = 8, kRounds = 25;
  std::vector<std::shared_ptr<Store>> connections;
  for (int i = 0; i < kClaimants; ++i) connections.push_back(connect());
  Token last = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ready{0}, granted{0};
    std::atomic<Token> token{0};
    std::vector<std::string> ids;
    for (int i = 0; i < kClaimants; ++i) ids.push_back(wire_id());
    std::vector<std::thread> threads;
    for (int i = 0; i < kClaimants; ++i) {
      threads.emplace_back([&, i] {
        recorder.guard([&] {
          ++ready;
          while (ready < kClaimants) std::this_thread::yield();
          const auto place = static_cast<std::size_t>(i);
          const Observation answer = take(*connections[place], m, ids[place]);
          if (!owns(answer, ids[place])) return;
          ++granted;
          token = answer.owner.token;
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(granted, 1) << "round " << round;
    EXPECT_GT(token, last);
    last = token;
    for (const std::string& id : ids) release(*store, m, id);
    ASSERT_TRUE(observe(*store, m).is_free());
  }
}

SIMBA_CASE(CallContract, AGivenUpPlaceInTheQueueLeavesNothingBehind) {
  take(*store, m, a);
  take(*store, m, b);  // in vain, or in a queue
  release(*store, m, b);
  EXPECT_TRUE(owns(observe(*store, m), a));
  release(*store, m, a);
  EXPECT_TRUE(observe(*store, m).is_free());
  EXPECT_EQ(observe(*store, m).owner.id, "");
}

SIMBA_CASE(CallContract, ALeaseThatIsOverWhenItArrivesOwnsNothing) {
  const Observation answer = take(*store, m, a, 1ms, 0ms);
  EXPECT_EQ(answer.owner.id, a);
  EXPECT_LE(answer.owner.transition_at - answer.now, 1ms) << "more than was asked for";
  EXPECT_TRUE(eventually([&] { return observe(*store, m).is_free(); }));
  EXPECT_FALSE(owns(renew(*store, m, a, answer.owner.token), a));
}

}  // namespace
}  // namespace simba::testing
