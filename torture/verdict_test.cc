#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "torture/call_verdict.h"
#include "torture/error_verdict.h"
#include "torture/moments.h"
#include "torture/outcome.h"
#include "torture/telling.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using Origin = Trouble::Origin;
using Timing = Verdict::Timing;

Record look(int ms, Token token) {
  return {at(ms), at(ms + 1), token, token, 0, Record::Kind::kLook, true, true};
}

Call granted(int ms, std::uint64_t id, Token token) {
  Call call;
  call.before = at(ms);
  call.after = at(ms + 1);
  call.id = call.owner = id;
  call.owner_token = token;
  call.lease = call.left = 1'500ms;
  call.answer = Call::Answer::kOwned;
  call.client = static_cast<int>(id);
  return call;
}

// The server that led was killed at the first of the two.
Fault failover(int begin, int end) {
  return {FaultKind::kFailover, -1, at(begin), at(end), {}, {at(begin), at(begin + 1)}};
}

// Two clients, one mutex; faults end at 1 s; the unfenced register has lost a write.
class VerdictTest : public ::testing::Test {
 protected:
  VerdictTest() {
    plan.mutexes = 1;
    plan.clients = 2;
    outcome.began = at(0);
    outcome.calm_since = outcome.owners_killed = at(1'000);
    outcome.ended = at(20'000);
    const Record lost{at(600), at(601), 5, 5, 6, Record::Kind::kUnfenced, false, false};
    outcome.histories = {
        {"m", {{0, {look(100, 5), look(300, 5), lost}}, {1, {look(500, 6), look(1'500, 7)}}}}};
    outcome.faults = {{FaultKind::kStopInWindow, 0, at(310), at(600)}};
  }
  Lane& lane(std::size_t client) { return outcome.histories[0].lanes[client]; }

  Plan plan;
  Outcome outcome;
};

TEST_F(VerdictTest, HoldsWhenNothingIsBrokenAndTheBugIsSeen) {
  const Verdict verdict = judge(plan, outcome);
  EXPECT_TRUE(verdict.holds());
  EXPECT_EQ(verdict.longest_takeover, 501ms);
  EXPECT_EQ(verdict.terms, 3U);
  EXPECT_EQ(verdict.longest_gap.length, 999ms);
}

TEST_F(VerdictTest, AHarnessThatSawNoLostWriteShowsNothing) {
  lane(0).records.pop_back();
  EXPECT_FALSE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)), HasSubstr("BLIND"));
}

TEST_F(VerdictTest, AnOwnerThatComesTooLateBreaksTheVerdictOnTime) {
  lane(1).records.back() = look(1'000 + 6'100, 7);
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kLate);
  EXPECT_FALSE(judge(plan, outcome).holds());
  lane(1).records.pop_back();
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kLate) << "nobody at all";
}

TEST_F(VerdictTest, AfterTheOwnersDeathAnotherMustBeThereInTime) {
  outcome.owners_killed = at(2'000);
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kLate);
  lane(0).records.push_back(look(2'500, 8));
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kInTime);
}

TEST_F(VerdictTest, AMachineThatStoodStillVoidsTimeAndNeverSafety) {
  lane(1).records.back() = look(1'000 + 6'100, 7);
  outcome.stalls = {{at(900), 200ms}};
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kLate) << "it stood still before";
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P6");
  outcome.stalls.push_back({at(2'000), 200ms});
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kVoid);
  EXPECT_TRUE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("2 stalls of the machine, 1 of them after the faults"));
  lane(0).records.push_back(look(700, 5));
  EXPECT_FALSE(judge(plan, outcome).holds());
}

TEST_F(VerdictTest, WhatIsLaterThanTheMachineStoodStillIsNotExcused) {
  lane(1).records.back() = look(1'000 + 6'300, 7);
  outcome.stalls = {{at(2'000), 200ms}, {at(1'050), 100ms}};
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kLate) << "301 ms late, 250 ms of it explained";
  outcome.stalls.push_back({at(7'350), 100ms});
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kVoid) << "and 51 ms more";
  outcome.stalls = {{at(19'000), 10s}};
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kLate) << "it stood still later";
}

TEST_F(VerdictTest, AMutexThatNobodyTakesIsDeadWhateverTheMachineDid) {
  lane(1).records.pop_back();
  outcome.stalls = {{at(15'000), 14s}};
  const Verdict verdict = judge(plan, outcome);
  EXPECT_EQ(verdict.timing, Timing::kLate);
  EXPECT_FALSE(verdict.holds());
  EXPECT_THAT(as_text({}, plan, outcome, verdict), HasSubstr("nobody owned it again, for 19.00 s"));
}

TEST_F(VerdictTest, AClockWhoseStepsNobodySawWasNotAttacked) {
  outcome.faults.push_back({FaultKind::kClockStep, -1, at(700), at(700)});
  EXPECT_FALSE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("0 of 1 steps read back from the server: THEY DID NOT ACT"));
  outcome.steps_seen = 1;
  EXPECT_TRUE(judge(plan, outcome).holds());
}

TEST_F(VerdictTest, WhatWasPossibleAndNeverHappenedWasNotAttacked) {
  outcome.possible = {FaultKind::kStopInWindow, FaultKind::kFailover, FaultKind::kKill};
  EXPECT_FALSE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("1 stop before a write; NO kill, NO failover: nothing is shown"));
  outcome.faults.push_back(failover(400, 450));
  outcome.faults.push_back({FaultKind::kKill, 0, at(400), at(450)});
  outcome.failovers_seen = 1;
  EXPECT_TRUE(judge(plan, outcome).holds());
}

TEST_F(VerdictTest, AFailoverAfterWhichNobodyElseLedWasNone) {
  outcome.faults.push_back(failover(400, 450));
  EXPECT_FALSE(judge(plan, outcome).holds());
  outcome.failovers_seen = 1;
  EXPECT_TRUE(judge(plan, outcome).holds());
}

TEST_F(VerdictTest, TwoOwnersAreCountedWhereAFailoverMayForgetAndBreakP1ElseAndLater) {
  lane(0).records.push_back(look(700, 5));  // 6 was seen at 500
  outcome.faults.push_back(failover(400, 450));
  outcome.failovers_seen = 1;
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P1") << "nothing may be forgotten";
  outcome.forgets = true;
  EXPECT_TRUE(judge(plan, outcome).holds());
  EXPECT_EQ(judge(plan, outcome).forgotten, 2U) << "P1 and P1b";
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("what they forgot made two owners 2 times"));
  lane(0).records.back() = look(1'920, 5);
  EXPECT_FALSE(judge(plan, outcome).holds()) << "a lease after the kill it is over";
  lane(0).records.back() = look(390, 5);
  lane(1).records.front() = look(380, 6);
  EXPECT_FALSE(judge(plan, outcome).holds()) << "before the failover nothing was forgotten";
  lane(0).records.back() = look(700, 5);
  EXPECT_FALSE(judge(plan, outcome).holds()) << "nor was who had come by then";
}

TEST_F(VerdictTest, AFailoverForgetsNothingThatCameAfterTheKill) {
  outcome.forgets = true;
  outcome.faults.push_back(failover(400, 700));
  outcome.failovers_seen = 1;
  lane(0).records.front() = look(410, 5);
  lane(0).records.at(1) = look(800, 5);
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P1") << "both of the new server";
  outcome.calls = {{"m", {granted(399, 1, 4)}}};
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P1") << "another token";
  outcome.calls = {{"m", {granted(399, 1, 5)}}};
  EXPECT_TRUE(judge(plan, outcome).holds()) << "it stood still when it was granted the mutex";
}

TEST_F(VerdictTest, AFailoverForgetsFromItsKillOnAndNotSinceTheStandbyWasHeldBack) {
  outcome.forgets = true;
  lane(0).records.push_back(look(700, 5));  // 6 was seen at 500
  Fault fault = failover(600, 800);
  fault.begin = at(400);
  outcome.faults.push_back(fault);
  outcome.failovers_seen = 1;
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P1");
  EXPECT_TRUE(lease_rules(plan, outcome, true).forgets.at(0).begin == at(600));
  EXPECT_TRUE(lease_rules(plan, outcome, true).forgets.at(0).end == at(601) + plan.lease());
  outcome.faults.back().kill = Fault{}.kill;
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P1") << "nobody was killed";
  EXPECT_TRUE(lease_rules(plan, outcome, true).forgets.empty());
}

TEST_F(VerdictTest, WhatIsForgivenHidesNothingThatIsNot) {
  outcome.forgets = true;
  outcome.failovers_seen = 1;
  lane(0).records.clear();
  lane(1).records = {look(1'500, 200)};
  for (int i = 0; i < 50; ++i) {
    const Token token = 8 + 2 * static_cast<Token>(i);
    const int ms = 300 + 10 * i;
    lane(0).records.push_back(look(ms, token));
    outcome.faults.push_back(failover(ms + 2, ms + 9));
    lane(1).records.push_back(look(ms + 4, token + 1));
    lane(0).records.push_back(look(ms + 6, token));
  }
  Record same = look(900, 107);
  same.term = 99;
  lane(1).records.push_back(same);
  const Verdict verdict = judge(plan, outcome);
  EXPECT_GE(verdict.forgotten, 100U) << "P1 and P1b, fifty times each";
  ASSERT_FALSE(verdict.violations.empty());
  EXPECT_EQ(verdict.violations.at(0).promise, "P2");
}

TEST_F(VerdictTest, OfEachPromiseNoMoreThanAnybodyReads) {
  for (Token token = 8; token < 58; ++token) {
    lane(0).records.push_back(look(2'000 + static_cast<int>(token), token));
    lane(1).records.push_back(look(3'000 + static_cast<int>(token), token));
    lane(1).records.back().term = 99;
  }
  lane(1).records.push_back(look(1'600, 99));
  std::map<std::string, int> told;
  for (const Violation& violation : judge(plan, outcome).violations) ++told[violation.promise];
  EXPECT_EQ(told, (std::map<std::string, int>{{"P1", 5}, {"P1b", 5}, {"P2", 5}}));
}

TEST_F(VerdictTest, AFailoverThatForgetsExcusesNoToken) {
  outcome.forgets = true;
  outcome.faults.push_back(failover(400, 450));
  outcome.failovers_seen = 1;
  Record same = look(700, 6);
  same.term = 99;
  lane(0).records.push_back(same);
  EXPECT_EQ(judge(plan, outcome).violations.at(0).promise, "P2");
}

TEST_F(VerdictTest, OfTheLongestTimeWithoutAnOwnerItIsSaidWhoseItWas) {
  outcome.histories.push_back({"other", {{0, {look(100, 5), look(600, 5), look(1'400, 6)}}}});
  outcome.histories.push_back({"owned", {{0, {look(100, 5), look(1'900, 5)}}}});
  outcome.stalls = {{at(1'000), 300ms}};
  outcome.held_up = 40ms;
  EXPECT_THAT(
      as_text({}, plan, outcome, judge(plan, outcome)),
      HasSubstr("(m, 0.50 s after the start: 2 of 3 mutexes had none then; the machine stood "
                "still for 0.30 s of it), the harness itself was held up for 0.04 s"));
}

TEST_F(VerdictTest, AClientThatEndsBadlyFailsTheRunAndIsQuoted) {
  outcome.bad_ends = {
      {"end", "client 1 was to end, and ended of signal 6; it said last: no", at(9)}};
  EXPECT_FALSE(judge(plan, outcome).holds());
  const std::string text = as_text({}, plan, outcome, judge(plan, outcome));
  EXPECT_THAT(text, HasSubstr("  end         client 1 was to end, and ended of signal 6"));
  EXPECT_THAT(text, HasSubstr("no promise broken"));
}

// Client 1's term is over, and so many looks say that it was not told so.
void end_untold(Lane& lane, int looks, bool is_told) {
  for (int i = 0; i <= looks; ++i) {
    if (i == looks && !is_told) return;
    Record over = look(2'000 + 6 * i, 7);
    over.is_in_ttl = over.is_owner = false;
    over.is_told = i == looks;
    lane.records.push_back(over);
  }
}

TEST_F(VerdictTest, AStopRequestThatIsLateIsAMatterOfTimeAndFailsTheRun) {
  end_untold(lane(1), 30, true);
  const Verdict verdict = judge(plan, outcome);
  EXPECT_EQ(verdict.violations.at(0).promise, "P4");
  EXPECT_EQ(verdict.timing, Timing::kLate);
  EXPECT_FALSE(verdict.holds());
  EXPECT_EQ(verdict.tellings.late, 1);
  const std::string text = as_text({}, plan, outcome, verdict);
  EXPECT_THAT(text, HasSubstr("no promise broken"));
  EXPECT_THAT(text, HasSubstr("1 stop requests came late, after up to 0.14 s of running time"));
  const auto json = nlohmann::json::parse(as_json({}, plan, outcome, verdict));
  EXPECT_EQ(json["late_stop_requests"], 1);
  EXPECT_EQ(json["late_stop_requests_excused"], 0);
  EXPECT_EQ(json["missing_stop_requests"], 0);
  EXPECT_EQ(json["timing"], "late");
}

TEST_F(VerdictTest, AStallExcusesALateStopRequestByItsOwnLengthAndNoMore) {
  end_untold(lane(1), 30, true);
  outcome.stalls = {{at(1'990), 150ms}};
  EXPECT_FALSE(judge(plan, outcome).holds()) << "it stood still before";
  outcome.stalls = {{at(2'120), 20ms}};
  EXPECT_FALSE(judge(plan, outcome).holds()) << "and for less than it was late";
  outcome.stalls = {{at(2'150), 120ms}};
  const Verdict verdict = judge(plan, outcome);
  EXPECT_TRUE(verdict.holds());
  EXPECT_EQ(verdict.timing, Timing::kVoid);
  EXPECT_THAT(as_text({}, plan, outcome, verdict),
              HasSubstr("1 stop requests were late while the machine stood still"));
  EXPECT_EQ(
      nlohmann::json::parse(as_json({}, plan, outcome, verdict))["late_stop_requests_excused"], 1);
}

TEST_F(VerdictTest, ABusyMachineNeitherVoidsNorFailsIt) {
  end_untold(lane(1), 30, true);
  lane(1).records.back().waited = 130ms;
  EXPECT_EQ(judge(plan, outcome).timing, Timing::kInTime);
  EXPECT_TRUE(judge(plan, outcome).holds());
}

TEST_F(VerdictTest, AStopRequestThatNeverComesIsAMatterOfSafetyAndNotExcused) {
  end_untold(lane(1), kMostOverLooks, false);
  outcome.stalls = {{at(10'000), 9s}};
  const Verdict verdict = judge(plan, outcome);
  EXPECT_EQ(verdict.violations.at(0).promise, "P4");
  EXPECT_EQ(verdict.tellings.never, 1);
  EXPECT_EQ(verdict.timing, Timing::kInTime);
  const std::string text = as_text({}, plan, outcome, verdict);
  EXPECT_THAT(text, HasSubstr("broken, see above"));
  EXPECT_THAT(text, HasSubstr("1 stop requests never came"));
  EXPECT_EQ(nlohmann::json::parse(as_json({}, plan, outcome, verdict))["missing_stop_requests"], 1);
}

TEST_F(VerdictTest, ANotebookThatIsFullIsNoProof) {
  outcome.is_overfull = true;
  EXPECT_FALSE(judge(plan, outcome).holds());
}

TEST_F(VerdictTest, CallsThatHaveNoOrderBreakTheRun) {
  outcome.calls = {{"m", {granted(100, 1, 5)}}};
  EXPECT_TRUE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("of 1 mutexes, 1 calls to the store: linearizable"));
  outcome.calls[0].calls.push_back(granted(600, 2, 6));
  const Verdict verdict = judge(plan, outcome);
  EXPECT_FALSE(verdict.holds());
  ASSERT_EQ(verdict.violations.size(), 1U);
  EXPECT_EQ(verdict.violations[0].promise, "LIN");
  EXPECT_EQ(verdict.violations[0].what,
            "m: no order of these calls is that of a lease: client 1 as 0001 took for 1500 ms "
            "[0.1000, 0.1010]: granted, token 5; client 2 as 0002 took for 1500 ms [0.6000, "
            "0.6010]: granted, token 6");
  EXPECT_THAT(as_text({}, plan, outcome, verdict), HasSubstr("1 NOT LINEARIZABLE"));
}

TEST_F(VerdictTest, AMutexOfWhichNoCallWasNotedDownIsNoProof) {
  outcome.calls = {{"m", {granted(100, 1, 5)}}};
  EXPECT_TRUE(judge(plan, outcome).holds());
  outcome.calls.push_back({"other", {}});
  EXPECT_FALSE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("linearizable; of 1 mutexes NO CALL WAS NOTED DOWN, nothing is shown"));
  outcome.calls.erase(outcome.calls.begin());
  EXPECT_FALSE(judge(plan, outcome).holds());
  EXPECT_THAT(as_text({}, plan, outcome, judge(plan, outcome)),
              HasSubstr("  calls       of 1 mutexes NO CALL WAS NOTED DOWN"));
}

TEST_F(VerdictTest, WhatAFailoverForgotIsCounted) {
  outcome.calls = {{"m", {granted(100, 1, 5), granted(600, 2, 6)}}};
  outcome.faults.push_back(failover(400, 450));
  outcome.failovers_seen = 1;
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U);
  outcome.forgets = true;
  EXPECT_TRUE(judge(plan, outcome).holds());
  EXPECT_EQ(judge(plan, outcome).calls.forgotten, 1U);
}

TEST_F(VerdictTest, WhatAStoreTellsOfThePastIsJudgedByIt) {
  Call released = granted(200, 1, 5);
  released.kind = Call::Kind::kRelease;
  released.token = 5;
  released.answer = Call::Answer::kDone;
  Call old = granted(300, 1, 5);
  old.kind = Call::Kind::kObserve;
  old.id = 0;
  outcome.calls = {{"m", {granted(100, 1, 5), released, old}}};
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U);
  outcome.rules.old_question = 10s;
  EXPECT_TRUE(judge(plan, outcome).violations.empty());
  outcome.rules.is_ours = outcome.rules.is_old_after_failover_only = true;
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U) << "there was none";
  outcome.rules = {};
  outcome.rules.may_forget_release = true;
  EXPECT_TRUE(judge(plan, outcome).violations.empty()) << "somebody may have killed it";
  outcome.rules.is_ours = true;
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U) << "nobody did";
  for (const FaultKind kind : {FaultKind::kServerKill, FaultKind::kFailover}) {
    outcome.faults = {{kind, -1, at(250), at(280)}};
    EXPECT_TRUE(judge(plan, outcome).violations.empty());
  }
  Call& again = outcome.calls[0].calls.back();
  again.before = at(2'200);
  again.after = at(2'201);
  outcome.faults.push_back({FaultKind::kClockStep, -1, at(300), at(300), -500ms});
  EXPECT_TRUE(judge(plan, outcome).violations.empty()) << "a clock set back makes a lease longer";
  again.before = at(2'300);
  again.after = at(2'301);
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U) << "not by more than that";
}

TEST_F(VerdictTest, CallsThatFoundNoRoomAreSaidToBeMissing) {
  outcome.calls = {{"m", {granted(100, 1, 5), granted(600, 2, 6)}, at(500), true}};
  const Verdict verdict = judge(plan, outcome);
  EXPECT_TRUE(verdict.holds());
  EXPECT_THAT(as_text({}, plan, outcome, verdict),
              HasSubstr("1 calls to the store: linearizable; a log was full"));
}

TEST_F(VerdictTest, ErrorsThatPassAreCountedAndBreakNothing) {
  outcome.errors.counts.at(static_cast<std::size_t>(Errc::kUnreachable)) = 12;
  outcome.errors.counts.at(static_cast<std::size_t>(Errc::kTimeout)) = 3;
  const Verdict verdict = judge(plan, outcome);
  EXPECT_TRUE(verdict.holds());
  EXPECT_THAT(as_text({}, plan, outcome, verdict),
              HasSubstr("  errors      12 unreachable, 3 timeout\n"));
  const auto json = nlohmann::json::parse(as_json({}, plan, outcome, verdict));
  EXPECT_EQ(json["errors"]["unreachable"], 12);
  EXPECT_EQ(json["errors"]["timeout"], 3);
  EXPECT_EQ(json["errors"]["corrupt"], 0);
}

TEST_F(VerdictTest, AnErrorThatNoAttackExplainsFailsTheRunAndTheFirstOfItsKindIsQuoted) {
  for (const Errc errc :
       {Errc::kCorrupt, Errc::kReplaced, Errc::kMisconfigured, Errc::kMisuse, Errc::kDenied}) {
    outcome.errors = {};
    outcome.errors.counts.at(static_cast<std::size_t>(errc)) = 2;
    outcome.errors.troubles = {{at(700), Origin::kCall, errc, 1, "the first"},
                               {at(800), Origin::kCall, errc, 0, "the second"}};
    const Verdict verdict = judge(plan, outcome);
    ASSERT_EQ(verdict.violations.size(), 1U);
    EXPECT_FALSE(verdict.holds());
    const std::string word(word_of(errc)), text = as_text({}, plan, outcome, verdict);
    EXPECT_THAT(text, HasSubstr("  error       client 1 asked the store, and the answer was the "
                                "error '" +
                                word + "', the first of 2 times: the first, 0.70 s after"));
    EXPECT_THAT(text, Not(HasSubstr("the second")));
    EXPECT_THAT(text, HasSubstr("  errors      2 " + word + '\n'));
    EXPECT_THAT(text, HasSubstr("no promise broken"));
    const auto json = nlohmann::json::parse(as_json({}, plan, outcome, verdict));
    EXPECT_EQ(json["errors"][word], 2);
    EXPECT_EQ(json["violations"][0]["promise"], "error");
  }
}

TEST_F(VerdictTest, WhatTheLibraryThrowsOrOnlySaysFailsTheRunToo) {
  outcome.errors.troubles = {{at(700), Origin::kThrown, Errc::kCorrupt, 1, "out of lock()"}};
  EXPECT_FALSE(judge(plan, outcome).holds());
  outcome.errors.troubles = {{at(700), Origin::kLine, {}, 1, "a callback threw"}};
  const Verdict verdict = judge(plan, outcome);
  EXPECT_FALSE(verdict.holds());
  const std::string text = as_text({}, plan, outcome, verdict);
  EXPECT_THAT(text, HasSubstr("client 1 was told in the log of an error: a callback threw"));
  EXPECT_THAT(text, HasSubstr("  errors      none"));
}

TEST_F(VerdictTest, AServerOfSomebodyElseMayDenyWhileItOnlyReads) {
  const std::string denied = "redis: the server only reads";
  outcome.errors.troubles = {{at(700), Origin::kCall, Errc::kDenied, 1, denied},
                             {at(700), Origin::kLine, {}, 1, "'m': " + denied},
                             {at(701), Origin::kThrown, Errc::kDenied, 1, denied}};
  EXPECT_EQ(judge(plan, outcome).violations.size(), 3U) << "this store does not";
  outcome.rules.denies_while_it_only_reads = true;
  EXPECT_TRUE(judge(plan, outcome).holds());
  outcome.rules.is_ours = true;
  EXPECT_FALSE(judge(plan, outcome).holds()) << "nobody made it only read";
  outcome.rules.is_ours = false;
  outcome.errors.troubles.push_back({at(702), Origin::kLine, {}, 1, "a callback threw"});
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U) << "a line that repeats nothing";
  outcome.errors.troubles.back() = {at(702), Origin::kCall, Errc::kCorrupt, 1, denied};
  EXPECT_EQ(judge(plan, outcome).violations.size(), 1U) << "another kind";
}

TEST_F(VerdictTest, OfEachKindOfErrorOneIsTold) {
  outcome.errors.troubles = {{at(700), Origin::kCall, Errc::kCorrupt, 1, "a"},
                             {at(701), Origin::kLine, {}, 1, "b"},
                             {at(702), Origin::kCall, Errc::kDenied, 1, "c"},
                             {at(703), Origin::kCall, Errc::kCorrupt, 1, "d"},
                             {at(704), Origin::kThrown, Errc::kCorrupt, 1, "e"}};
  EXPECT_EQ(judge(plan, outcome).violations.size(), 4U);
}

TEST_F(VerdictTest, WhatAServerSaidAndIsNoTextSpoilsNoJson) {
  outcome.errors.troubles = {{at(700), Origin::kCall, Errc::kCorrupt, 1, "caf\xc3"}};
  const auto json = nlohmann::json::parse(as_json({}, plan, outcome, judge(plan, outcome)));
  EXPECT_EQ(json["holds"], false);
}

TEST_F(VerdictTest, TheJsonIsOneObjectWithAllOfIt) {
  lane(0).records.push_back(look(700, 5));
  const std::string text =
      as_json({"redis", "again", {"the clock"}}, plan, outcome, judge(plan, outcome));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["holds"], false);
  EXPECT_EQ(json["store"], "redis");
  EXPECT_EQ(json["violations"][0]["promise"], "P1");
  EXPECT_EQ(json["faults"]["stop before a write"], 1);
  EXPECT_EQ(json["unfenced_lost"], 1);
}

TEST_F(VerdictTest, ThePictureShowsTermsFaultsAndTakeovers) {
  const std::string sound = as_picture({"redis", "", {}}, plan, outcome, judge(plan, outcome));
  EXPECT_THAT(sound, HasSubstr("client 1, token 7"));
  EXPECT_THAT(sound, HasSubstr(">stop before a write<"));
  EXPECT_THAT(sound, HasSubstr("stroke-width='0.7'")) << "from client 0 to client 1";
  EXPECT_THAT(sound, Not(HasSubstr("#d00000")));
  lane(0).records.push_back(look(700, 5));
  EXPECT_THAT(as_picture({"redis", "", {}}, plan, outcome, judge(plan, outcome)),
              HasSubstr("#d00000"));
}

}  // namespace
}  // namespace simba::torture
