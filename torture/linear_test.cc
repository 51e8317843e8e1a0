#include "torture/linear.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>

#include "testing/dice.h"
#include "torture/moments.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using Calls = std::vector<Call>;
using Found = Order::Verdict;

constexpr nanoseconds kLease = 1'000ms;
constexpr std::uint64_t kAnn = 0xa1, kBob = 0xb2, kCid = 0xc3;

Call asked(Call::Kind kind, int before, int after, std::uint64_t id, Token token = 0) {
  Call call;
  call.kind = kind;
  call.before = at(before);
  call.after = at(after);
  call.id = id;
  call.token = token;
  call.lease = kLease;
  call.client = static_cast<int>(id & 0xfU);
  return call;
}
Call owned(Call call, std::uint64_t owner, Token token) {
  call.answer = Call::Answer::kOwned;
  call.owner = owner;
  call.owner_token = token;
  call.left = kLease;
  return call;
}

Call granted(int before, int after, std::uint64_t id, Token token) {
  return owned(asked(Call::Kind::kTake, before, after, id), id, token);
}
Call refused(int before, int after, std::uint64_t id, std::uint64_t owner, Token token) {
  return owned(asked(Call::Kind::kTake, before, after, id), owner, token);
}
Call renewed(int before, int after, std::uint64_t id, Token token) {
  return owned(asked(Call::Kind::kRenew, before, after, id, token), id, token);
}
Call seen(int before, int after, std::uint64_t owner, Token token) {
  return owned(asked(Call::Kind::kObserve, before, after, 0), owner, token);
}
Call answered(Call call, Call::Answer answer) {
  call.answer = answer;
  return call;
}
Call free(int before, int after) {
  return answered(asked(Call::Kind::kObserve, before, after, 0), Call::Answer::kFree);
}
Call nameless(int before, int after) {
  return answered(asked(Call::Kind::kObserve, before, after, 0), Call::Answer::kNameless);
}
Call released(int before, int after, std::uint64_t id, Token token) {
  return answered(asked(Call::Kind::kRelease, before, after, id, token), Call::Answer::kDone);
}
// The answer was lost, or whoever waited for it died.
Call unheard(Call::Kind kind, int before, std::uint64_t id, Token token = 0) {
  return asked(kind, before, 0, id, token);
}

LeaseRules strict() {
  LeaseRules rules;
  rules.allowance = 50ms;
  return rules;
}

Found order(const Calls& calls, const LeaseRules& rules = strict()) {
  return find_order(calls, rules).verdict;
}

TEST(LinearTest, NoCallsAreInOrder) { EXPECT_EQ(order({}), Found::kFound); }

TEST(LinearTest, TakeRenewReleaseAndTheNextOwner) {
  EXPECT_EQ(order({free(0, 1), granted(2, 3, kAnn, 7), refused(4, 5, kBob, kAnn, 7),
                   renewed(600, 601, kAnn, 7), seen(700, 701, kAnn, 7), released(800, 801, kAnn, 7),
                   free(802, 803), granted(804, 805, kBob, 8)}),
            Found::kFound);
}

TEST(LinearTest, OfTwoTakesAtOnceOneMayBeGranted) {
  EXPECT_EQ(order({granted(0, 9, kAnn, 7), refused(0, 9, kBob, kAnn, 7)}), Found::kFound);
  EXPECT_EQ(order({granted(0, 9, kAnn, 7), granted(0, 9, kBob, 8)}), Found::kNone);
  EXPECT_EQ(order({granted(0, 9, kAnn, 7), granted(20, 21, kBob, 8)}), Found::kNone);
}

TEST(LinearTest, ATakeByTheOwnerHasTheSameToken) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), granted(5, 6, kAnn, 7)}), Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), granted(5, 6, kAnn, 8)}), Found::kNone);
}

TEST(LinearTest, AnotherMayTakeWhenTheLeaseIsOverAndNotBefore) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), granted(1'000, 1'001, kBob, 8)}), Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), granted(949, 949, kBob, 8)}), Found::kNone);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), granted(949, 950, kBob, 8)}), Found::kFound)
      << "what clocks may be off";
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), free(940, 941)}), Found::kNone);
  EXPECT_EQ(
      order({granted(0, 1, kAnn, 7), renewed(600, 601, kAnn, 7), granted(1'100, 1'101, kBob, 8)}),
      Found::kNone);
}

TEST(LinearTest, WhoGrantsLessIsTakenAtItsWord) {
  Call less = granted(0, 1, kAnn, 7);
  less.left = 300ms;
  EXPECT_EQ(order({less, granted(320, 321, kBob, 8)}), Found::kFound);
  less.left = 2'000ms;
  EXPECT_EQ(order({less, granted(1'100, 1'101, kBob, 8)}), Found::kFound) << "more is not believed";
}

TEST(LinearTest, ARenewalRevivesNothing) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), renewed(1'100, 1'101, kAnn, 7)}), Found::kNone);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), renewed(1'040, 1'041, kAnn, 7)}), Found::kFound);
  EXPECT_EQ(
      order({granted(0, 1, kAnn, 7), renewed(900, 901, kAnn, 7), renewed(1'800, 1'801, kAnn, 7)}),
      Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), unheard(Call::Kind::kRenew, 900, kAnn, 7),
                   renewed(1'800, 1'801, kAnn, 7)}),
            Found::kFound)
      << "the lost one may have prolonged it";
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), renewed(4, 5, kAnn, 7)}),
            Found::kNone);
  EXPECT_EQ(order({renewed(800, 801, kAnn, 7), granted(700, 1'200, kAnn, 7),
                   renewed(2'100, 2'101, kAnn, 7)}),
            Found::kFound)
      << "however they are sorted";
}

TEST(LinearTest, AClockSetBackMakesALeaseLonger) {
  LeaseRules rules = strict();
  rules.steps = {{at(500), -400ms}};
  const Calls late{granted(0, 1, kAnn, 7), renewed(1'300, 1'301, kAnn, 7)};
  EXPECT_EQ(order(late, rules), Found::kFound);
  rules.steps[0].by = 400ms;
  EXPECT_EQ(order(late, rules), Found::kNone);
}

TEST(LinearTest, ARenewalThatMatchesNothingCreatesNothing) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 8),
                   released(6, 7, kBob, 8), renewed(10, 11, kAnn, 7)}),
            Found::kNone);
}

TEST(LinearTest, AReleaseFreesOnlyItsOwnTerm) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kBob, 6), seen(4, 5, kAnn, 7)}),
            Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kBob, 6), free(4, 5)}), Found::kNone);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kBob, 6), granted(4, 5, kCid, 8)}),
            Found::kNone);
}

TEST(LinearTest, AReleaseThatIsAnsweredHasHappened) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), seen(4, 5, kAnn, 7)}),
            Found::kNone);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 9, kAnn, 7), seen(4, 5, kAnn, 7)}),
            Found::kFound);
}

TEST(LinearTest, TokensGrow) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 6)}),
            Found::kNone);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 7)}),
            Found::kNone);
}

TEST(LinearTest, ATakeWhoseAnswerWasLostMayHappenAtAnyTimeAfterItsBegin) {
  EXPECT_EQ(order({unheard(Call::Kind::kTake, 10, kBob), granted(0, 1, kAnn, 7),
                   released(2, 3, kAnn, 7), free(20, 21), seen(30, 31, kBob, 8)}),
            Found::kFound);
  EXPECT_EQ(order({unheard(Call::Kind::kTake, 10, kBob), granted(0, 1, kAnn, 7),
                   released(20, 21, kAnn, 7), granted(22, 23, kCid, 8)}),
            Found::kFound)
      << "or never";
  EXPECT_EQ(order({unheard(Call::Kind::kTake, 35, kBob), granted(0, 1, kAnn, 7),
                   released(2, 3, kAnn, 7), seen(30, 31, kBob, 8)}),
            Found::kNone)
      << "not before";
  EXPECT_EQ(order({unheard(Call::Kind::kTake, 10, kBob), free(20, 21), seen(30, 31, kBob, 8),
                   released(40, 41, kBob, 0), seen(50, 51, kBob, 9)}),
            Found::kNone)
      << "once";
}

TEST(LinearTest, AReleaseWhoseAnswerWasLostMayHappenAtAnyTimeAfterItsBegin) {
  const Call lost = unheard(Call::Kind::kRelease, 10, kAnn, 7);
  EXPECT_EQ(order({lost, granted(0, 1, kAnn, 7), seen(20, 21, kAnn, 7), granted(30, 31, kBob, 8)}),
            Found::kFound);
  EXPECT_EQ(order({lost, granted(0, 1, kAnn, 7), granted(8, 9, kBob, 8)}), Found::kNone);
}

TEST(LinearTest, WhatAKilledClientHeldIsItsOwnUntilTheEndOfTheLease) {
  const Calls killed{granted(0, 1, kAnn, 7), unheard(Call::Kind::kRenew, 600, kAnn, 7)};
  Calls early = killed, late = killed;
  early.push_back(granted(700, 701, kBob, 8));
  late.push_back(granted(1'001, 1'002, kBob, 8));
  EXPECT_EQ(order(early), Found::kNone);
  EXPECT_EQ(order(late), Found::kFound);
  late.push_back(renewed(1'100, 1'101, kAnn, 7));
  EXPECT_EQ(order(late), Found::kNone);
}

TEST(LinearTest, AnOwnerThatNeverAskedIsOnlyThereBeforeTheFirstCall) {
  EXPECT_EQ(order({seen(0, 1, kBob, 5), free(2, 3), granted(4, 5, kAnn, 7)}), Found::kFound);
  EXPECT_EQ(order({free(2, 3), seen(4, 5, kBob, 5)}), Found::kNone);
}

TEST(LinearTest, BlockedDidNothing) {
  EXPECT_EQ(order({answered(asked(Call::Kind::kTake, 0, 1, kBob), Call::Answer::kBlocked),
                   free(2, 3), seen(4, 5, kBob, 5)}),
            Found::kNone);
}

TEST(LinearTest, AnOwnerWithoutATokenIsComparedByItsName) {
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), seen(2, 3, kAnn, 0)}), Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 8),
                   seen(6, 7, kAnn, 0)}),
            Found::kNone);
}

TEST(LinearTest, WhoIsToldThatItOwnsWithoutATokenWasGrantedNothing) {
  const Call nothing = granted(0, 1, kAnn, 0);
  EXPECT_EQ(order({nothing}), Found::kFound) << "nothing is known that could be compared";
  EXPECT_EQ(order({nothing, granted(2, 3, kBob, 7)}), Found::kFound);
  EXPECT_EQ(order({granted(4, 5, kAnn, 7), granted(6, 7, kAnn, 0)}), Found::kFound) << "it owns";
  EXPECT_EQ(order({granted(4, 5, kAnn, 7), released(6, 7, kAnn, 7), granted(8, 9, kAnn, 0)}),
            Found::kNone)
      << "it has no term any more";
}

TEST(LinearTest, AnEvictionTakesTheNameAndKeepsTheLease) {
  const Call evicted =
      answered(asked(Call::Kind::kEvict, 10, 11, kAnn, 7), Call::Answer::kNameless);
  const Call owner = granted(0, 1, kAnn, 7);
  EXPECT_EQ(order({owner, evicted, nameless(12, 13), granted(1'001, 1'002, kBob, 8)}),
            Found::kFound);
  EXPECT_EQ(order({owner, evicted, granted(500, 501, kBob, 8)}), Found::kNone);
  EXPECT_EQ(order({owner, evicted, renewed(20, 21, kAnn, 7)}), Found::kNone);
  EXPECT_EQ(order({owner, nameless(12, 13)}), Found::kNone);
  const Call freed = answered(asked(Call::Kind::kEvictFree, 10, 11, kAnn, 7), Call::Answer::kFree);
  EXPECT_EQ(order({owner, freed, granted(12, 13, kBob, 8)}), Found::kFound);
  EXPECT_EQ(order({owner, unheard(Call::Kind::kEvict, 5, kAnn, 7), nameless(12, 13)}),
            Found::kFound);
}

TEST(LinearTest, WhoWaitsInAQueueMayOwnBeforeItIsTold) {
  const Calls queue{granted(0, 1, kAnn, 7), refused(2, 3, kBob, kAnn, 7), released(10, 11, kAnn, 7),
                    refused(12, 13, kCid, kBob, 8)};
  LeaseRules rules = strict();
  EXPECT_EQ(order(queue, rules), Found::kNone);
  rules.queues = true;
  EXPECT_EQ(order(queue, rules), Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(10, 11, kAnn, 7), seen(12, 13, kBob, 8),
                   refused(20, 21, kBob, kCid, 9)},
                  rules),
            Found::kNone)
      << "not before it asks";
}

TEST(LinearTest, WhatIsToldOfOthersMayBeOldAndNoCallBeginsSooner) {
  Call old = refused(40, 41, kBob, kAnn, 7);
  const Calls before{granted(0, 1, kAnn, 7), released(10, 11, kAnn, 7)};
  LeaseRules rules = strict();
  rules.queues = true;
  const auto with = [&before](Calls more) {
    more.insert(more.begin(), before.begin(), before.end());
    return more;
  };
  EXPECT_EQ(order(with({old}), rules), Found::kNone);
  old.age = 20ms;
  EXPECT_EQ(order(with({old}), rules), Found::kNone) << "not as old as that";
  old.age = 30ms;
  EXPECT_EQ(order(with({old}), rules), Found::kFound);
  EXPECT_EQ(order(with({old, seen(42, 43, kBob, 8)}), rules), Found::kFound);
  EXPECT_EQ(order(with({old, seen(30, 31, kBob, 8)}), rules), Found::kNone)
      << "it had not asked yet";
}

TEST(LinearTest, AFailoverThatForgetsExcusesTheOwnerAndNoToken) {
  LeaseRules rules = strict();
  const Calls forgotten{granted(0, 1, kAnn, 7), granted(200, 201, kBob, 8)};
  EXPECT_EQ(order(forgotten, rules), Found::kNone);
  rules.forgets = {{at(100), at(1'200)}};
  EXPECT_EQ(order(forgotten, rules), Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), granted(200, 201, kBob, 6)}, rules), Found::kNone);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 8),
                   seen(200, 201, kAnn, 7)},
                  rules),
            Found::kFound)
      << "the one before is back";
  rules.forgets = {{at(300), at(1'200)}};
  EXPECT_EQ(order(forgotten, rules), Found::kNone) << "it was before the failover";
}

TEST(LinearTest, AFailoverThatForgetsForgetsNothingThatCameAfterIt) {
  LeaseRules rules = strict();
  rules.forgets = {{at(100), at(100) + kLease}};
  EXPECT_EQ(order({granted(90, 91, kAnn, 7), granted(200, 201, kBob, 8)}, rules), Found::kFound);
  EXPECT_EQ(order({granted(110, 111, kAnn, 7), granted(200, 201, kBob, 8)}, rules), Found::kNone);
  EXPECT_EQ(
      order({granted(90, 91, kAnn, 7), renewed(110, 111, kAnn, 7), granted(200, 201, kBob, 8)},
            rules),
      Found::kNone)
      << "who leads now knew the owner";
  EXPECT_EQ(
      order({granted(90, 91, kAnn, 7), released(95, 96, kAnn, 7), seen(200, 201, kAnn, 7)}, rules),
      Found::kFound)
      << "its release is forgotten";
  EXPECT_EQ(order({granted(110, 111, kAnn, 7), released(120, 121, kAnn, 7),
                   granted(130, 131, kBob, 8), seen(200, 201, kAnn, 7)},
                  rules),
            Found::kNone);
}

TEST(LinearTest, AReleaseThatACrashTookBackBringsItsTermAgainAndNoOther) {
  LeaseRules rules = strict();
  rules.revives = {{at(5), at(1'000)}};
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), seen(6, 7, kAnn, 7)}, rules),
            Found::kFound);
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 8),
                   seen(6, 7, kAnn, 7)},
                  rules),
            Found::kNone);
}

TEST(LinearTest, TheCulpritsAreOnlyThoseThatHaveNoOrderByThemselves) {
  Calls calls;
  for (int i = 0; i < 50; ++i) {
    const auto token = static_cast<Token>(i) + 1;
    calls.push_back(granted(10 * i, 10 * i + 1, kAnn + token * 256, token));
    calls.push_back(seen(10 * i + 2, 10 * i + 3, kAnn + token * 256, token));
    calls.push_back(released(10 * i + 4, 10 * i + 5, kAnn + token * 256, token));
  }
  calls.push_back(granted(600, 601, kBob, 100));
  calls.push_back(renewed(610, 611, kBob, 100));
  calls.push_back(granted(700, 701, kCid, 101));
  for (int i = 0; i < 50; ++i) calls.push_back(seen(800 + i, 800 + i, kCid, 101));
  const Order found = find_order(calls, strict());
  ASSERT_EQ(found.verdict, Found::kNone);
  EXPECT_EQ(describe(found.culprits, calls, at(0)),
            "client 2 as 00b2 renewed token 100 for 1000 ms [0.6100, 0.6110]: granted, token 100; "
            "client 3 as 00c3 took for 1000 ms [0.7000, 0.7010]: granted, token 101");
}

TEST(LinearTest, WhatHasNoEndOfWorkIsNotDecided) {
  LeaseRules rules = strict();
  rules.most_work = 3;
  EXPECT_EQ(order({granted(0, 1, kAnn, 7), released(2, 3, kAnn, 7), granted(4, 5, kBob, 8),
                   released(6, 7, kBob, 8), free(8, 9)},
                  rules),
            Found::kNotDecided);
}

// As clients make them: many terms, waiters that are refused, calls that overlap, some that stand
// still for long, lost answers.
Calls long_history(int terms) {
  Calls calls;
  for (int i = 0; i < terms; ++i) {
    const auto token = static_cast<Token>(i) + 1;
    const std::uint64_t id = kAnn + token * 256, other = kBob + token * 256;
    const int begin = 100 * i;
    calls.push_back(granted(begin, begin + 4, id, token));
    for (int k = 0; k < 8; ++k) {
      calls.push_back(refused(begin + 3 + 10 * k, begin + 18 + 10 * k, other, id, token));
      calls.push_back(renewed(begin + 8 + 10 * k, begin + 12 + 10 * k, id, token));
    }
    calls.push_back(unheard(Call::Kind::kTake, begin + 50, kCid + token * 256));
    calls.push_back(seen(begin + 40, begin + 900, id, token));
    calls.push_back(released(begin + 90, begin + 98, id, token));
    calls.push_back(
        answered(asked(Call::Kind::kObserve, begin + 60, begin + 500, 0), Call::Answer::kFree));
  }
  return calls;
}

TEST(LinearTest, TheWorkIsNearLinear) {
  Calls calls = long_history(2'000);
  LeaseRules rules = strict();
  rules.most_work = 40 * calls.size();
  EXPECT_EQ(order(calls, rules), Found::kFound);
  calls.push_back(granted(100'020, 100'021, kCid, 1'000'000));
  EXPECT_EQ(find_order(calls, rules).verdict, Found::kNone);
}

// A lease object that is asked by many at once, and whose answers are lost now and then.
class Crowded {
 public:
  explicit Crowded(std::uint64_t seed) : dice_(seed) {}

  Calls run() {
    std::multimap<int, Call> due;  // by when it happens
    for (int i = 0; i < 40; ++i) {
      const int before = static_cast<int>(dice_.below(3'000));
      const int happens = before + static_cast<int>(dice_.below(60));
      Call call = asked(kind(), before, happens + static_cast<int>(dice_.below(60)), id());
      if (call.kind == Call::Kind::kObserve) call.id = 0;
      due.emplace(happens, call);
    }
    Calls calls;
    for (auto& [happens, call] : due) {
      const bool is_lost = dice_.chance(0.15);
      if (!is_lost || dice_.chance(0.5)) perform(at(happens), call);
      if (is_lost) call.answer = Call::Answer::kNone;
      calls.push_back(call);
    }
    return calls;
  }

 private:
  Call::Kind kind() {
    constexpr std::array kKinds{Call::Kind::kTake,  Call::Kind::kTake,    Call::Kind::kRenew,
                                Call::Kind::kRenew, Call::Kind::kRelease, Call::Kind::kObserve};
    return kKinds.at(dice_.below(kKinds.size()));
  }
  std::uint64_t id() { return kAnn + 256 * dice_.below(4); }

  void perform(LocalTime now, Call& call) {
    if (end_ < now) owner_ = 0;
    const bool is_own = owner_ == call.id && owner_ != 0;
    if (call.kind == Call::Kind::kRenew) call.token = is_own ? token_ : token_ + 100;
    if (call.kind == Call::Kind::kRelease) {
      if (is_own) owner_ = 0;
      call.answer = Call::Answer::kDone;
      return;
    }
    if (call.kind == Call::Kind::kTake && owner_ == 0) {
      owner_ = call.id;
      ++token_;
    }
    if (owner_ == 0) {
      call.answer = Call::Answer::kFree;
      return;
    }
    const bool grants = call.kind != Call::Kind::kObserve && owner_ == call.id;
    if (grants) end_ = now + kLease;
    call = owned(call, owner_, token_);
    call.left = end_ - now;
  }

  testing::Dice dice_;
  std::uint64_t owner_ = 0;
  Token token_ = 0;
  LocalTime end_{};
};

TEST(LinearTest, WhateverALeaseObjectAnswersHasAnOrder) {
  LeaseRules exact;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    ASSERT_EQ(order(Crowded(seed).run(), exact), Found::kFound) << "seed " << seed;
  }
}

// One answer is another's: nearly always that shows.
TEST(LinearTest, AnAnswerThatIsNotItsOwnHasNone) {
  LeaseRules exact;
  int wrong = 0, found = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Calls calls = Crowded(seed).run();
    const auto heard = std::find_if(calls.begin() + 20, calls.end(), [](const Call& call) {
      return call.answer == Call::Answer::kOwned;
    });
    if (heard == calls.end()) continue;
    ++heard->owner_token;
    ++wrong;
    if (order(calls, exact) == Found::kNone) ++found;
  }
  EXPECT_GT(wrong, 400);
  EXPECT_GT(found, wrong / 2);
}

TEST(LinearTest, FromTheCutOnNoAnswerCounts) {
  const Calls calls = until({granted(0, 5, kAnn, 7), seen(3, 20, kBob, 8), granted(4, 20, kBob, 8),
                             granted(12, 13, kCid, 9)},
                            at(10));
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].answer, Call::Answer::kOwned);
  EXPECT_EQ(calls[1].answer, Call::Answer::kBlocked) << "it says nothing";
  EXPECT_EQ(calls[2].answer, Call::Answer::kNone) << "it may have happened";
}

}  // namespace
}  // namespace simba::torture
