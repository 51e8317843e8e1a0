#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "simba/error.h"
#include "simba/mutex_owner.h"
#include "simba/mutex_state.h"
#include "simba/store.h"
#include "simba/term.h"

namespace simba {
namespace {

using namespace std::chrono_literals;

constexpr StoreTime kAcquired{1000ms};
constexpr StoreTime kTtl{11'000ms};
constexpr StoreTime kTransition{17'000ms};

MutexOwner owner(std::string id) { return {std::move(id), kAcquired, kTtl, kTransition, 3}; }

MutexState state(std::string before, std::string after, std::string self) {
  MutexState state;
  state.before = before.empty() ? MutexOwner::none() : owner(std::move(before));
  state.after = after.empty() ? MutexOwner::none() : owner(std::move(after));
  state.self = std::move(self);
  return state;
}

TEST(MutexOwnerTest, NoneHasAnEmptyIdAndNoTime) {
  const MutexOwner& none = MutexOwner::none();
  EXPECT_EQ(none.id, "");
  EXPECT_EQ(none.acquired_at, StoreTime{});
  EXPECT_EQ(none.ttl_at, StoreTime{});
  EXPECT_EQ(none.transition_at, StoreTime{});
  EXPECT_EQ(none.token, 0U);
  EXPECT_FALSE(none.has_owner(StoreTime{1ms}));
  EXPECT_FALSE(none.is_in_ttl(StoreTime{0ms}));
}

TEST(MutexOwnerTest, IsOwnedByExactlyItsId) {
  EXPECT_TRUE(owner("a~1").is_owner("a~1"));
  EXPECT_FALSE(owner("a~1").is_owner("a~2"));
  EXPECT_FALSE(owner("a~1").is_owner("A~1"));
  EXPECT_FALSE(owner("a~1").is_owner("a~1 "));
  EXPECT_FALSE(owner("a~1").is_owner("a"));
  EXPECT_FALSE(owner("a~1").is_owner(""));
}

TEST(MutexOwnerTest, NobodyIsNotOwnedByTheEmptyId) {
  EXPECT_FALSE(MutexOwner::none().is_owner(""));
}

TEST(MutexOwnerTest, IsInTtlUntilJustBeforeItsEnd) {
  EXPECT_TRUE(owner("a").is_in_ttl(kTtl - 1ms));
  EXPECT_FALSE(owner("a").is_in_ttl(kTtl));
  EXPECT_TRUE(owner("a").is_in_ttl("a", kTtl - 1ms));
  EXPECT_FALSE(owner("a").is_in_ttl("b", kTtl - 1ms));
  EXPECT_FALSE(owner("a").is_in_ttl("a", kTtl));
}

TEST(MutexOwnerTest, WhoseTtlIsUnknownIsNotInTtl) {
  MutexOwner foreign = owner("a");
  foreign.ttl_at.reset();
  EXPECT_FALSE(foreign.is_in_ttl(StoreTime{0ms}));
  EXPECT_TRUE(foreign.is_in_transition(kTransition));
}

TEST(MutexOwnerTest, IsInTransitionAtItsVeryEnd) {
  EXPECT_TRUE(owner("a").is_in_transition(kTransition));
  EXPECT_FALSE(owner("a").is_in_transition(kTransition + 1ms));
  EXPECT_TRUE(owner("a").has_owner(kTransition));
  EXPECT_FALSE(owner("a").has_owner(kTransition + 1ms));
}

TEST(MutexOwnerTest, Original10IsAskedWithTheTimeOfTheQuestionNotOfTheRead) {
  const MutexOwner read_once = owner("a");
  EXPECT_TRUE(read_once.has_owner(kTtl));
  EXPECT_FALSE(read_once.has_owner(kTransition + 1ms));  // the same value, later
}

TEST(MutexOwnerTest, TheMutexIsFreeExactlyWhenNobodyIsInTransition) {
  for (const StoreTime now : {kTransition - 1ms, kTransition, kTransition + 1ms}) {
    const Observation seen{owner("a"), now};
    EXPECT_EQ(seen.is_free(), !seen.owner.is_in_transition(now));
  }
}

TEST(MutexStateTest, NoneIsNoChange) {
  const MutexState& none = MutexState::none();
  EXPECT_FALSE(none.is_changed());
  EXPECT_FALSE(none.is_acquired());
  EXPECT_FALSE(none.is_released());
  EXPECT_FALSE(none.is_owner());
  EXPECT_EQ(none.loss.reason, LossReason::kNone);
  EXPECT_FALSE(none.term);
}

TEST(MutexStateTest, FromNobodyToMeIsAcquired) {
  const MutexState change = state("", "me~1", "me~1");
  EXPECT_TRUE(change.is_changed());
  EXPECT_TRUE(change.is_acquired());
  EXPECT_FALSE(change.is_released());
  EXPECT_TRUE(change.is_owner());
}

TEST(MutexStateTest, FromMeToAnotherIsReleased) {
  const MutexState change = state("me~1", "other~1", "me~1");
  EXPECT_TRUE(change.is_changed());
  EXPECT_FALSE(change.is_acquired());
  EXPECT_TRUE(change.is_released());
  EXPECT_FALSE(change.is_owner());
}

TEST(MutexStateTest, FromMeToMeIsNoChangeButStillMine) {
  const MutexState renewed = state("me~1", "me~1", "me~1");
  EXPECT_FALSE(renewed.is_changed());
  EXPECT_FALSE(renewed.is_acquired());
  EXPECT_FALSE(renewed.is_released());
  EXPECT_TRUE(renewed.is_owner());
}

TEST(MutexStateTest, AmongOthersConcernsNobodyHere) {
  const MutexState change = state("other~1", "third~1", "me~1");
  EXPECT_TRUE(change.is_changed());
  EXPECT_FALSE(change.is_acquired() || change.is_released() || change.is_owner());
}

TEST(MutexStateTest, AnotherTermOfTheSameLabelIsSomebodyElse) {
  const MutexState change = state("me~1", "me~2", "me~1");
  EXPECT_TRUE(change.is_released());
  EXPECT_FALSE(change.is_acquired());
  EXPECT_FALSE(change.is_owner());
}

TEST(MutexStateTest, AnObserverNeverOwns) {
  for (const MutexState& change : {state("", "a", ""), state("a", "", ""), state("a", "b", "")}) {
    EXPECT_TRUE(change.is_changed());
    EXPECT_FALSE(change.is_acquired() || change.is_released() || change.is_owner());
  }
}

TEST(TermTest, OfNobodyOwnsNothing) {
  const Term term;
  EXPECT_FALSE(term);
  EXPECT_FALSE(term.is_owner());
  EXPECT_FALSE(term.is_in_ttl());
  EXPECT_EQ(term.token(), 0U);
  EXPECT_EQ(term.time_left(), 0ns);
  EXPECT_EQ(term.mutex(), "");
  EXPECT_EQ(term.wire_id(), "");
  EXPECT_EQ(term.loss().reason, LossReason::kNone);
  EXPECT_FALSE(term.lost().stop_possible());
}

TEST(ErrorTest, KnowsItsCodeAndItsCategory) {
  const Error error(Errc::kDenied, "no");
  EXPECT_EQ(error.code(), Errc::kDenied);
  EXPECT_STREQ(error.code().category().name(), "simba");
  EXPECT_STREQ(error.what(), "no");
}

TEST(ErrorTest, IsOneLineThatATerminalCanBeShownWhateverAStoreSays) {
  const auto said = [](const std::string& text) {
    return std::string(Error(Errc::kCorrupt, text).what());
  };
  EXPECT_EQ(said("\x1b]0;x\a\r\n"), "?]0;x?  ");
  EXPECT_EQ(said("caf\xc3\xa9\xc2\x9b"
                 "2J\x9b\xff\x7f"),
            "caf\xc3\xa9?2J???");
  EXPECT_EQ(said("no\n\tError: forged\v\f."), "no  Error: forged  .");
  EXPECT_EQ(said(std::string("a\0b", 3)), "a?b");
}

TEST(ErrorTest, SaysTheSameHoweverItIsCopiedMovedAndCaught) {
  Error error(Errc::kDenied, "no");
  const Error copy = error;
  const Error moved = std::move(error);
  error = Error(Errc::kTimeout, "late");
  EXPECT_STREQ(error.what(), "late");
  EXPECT_EQ(error.errc(), Errc::kTimeout);
  for (const Error& each : {copy, moved}) {
    try {
      throw Error(each);
    } catch (const std::runtime_error& caught) {
      EXPECT_STREQ(caught.what(), "no");
    }
  }
}

// The last of them frees what the others read: for the thread sanitizer.
TEST(ErrorTest, CopiesGoOnManyThreads) {
  std::atomic<int> said{0};
  for (int round = 0; round < 200; ++round) {
    std::optional<Error> error(std::in_place, Errc::kTimeout, "of round " + std::to_string(round));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&said, own = std::optional<Error>(error)]() mutable {
        said += std::string(own->what()).empty() ? 0 : 1;
        own.reset();
      });
    }
    error.reset();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(said, 800);
}

TEST(ErrorTest, OnlyWhatMayHelpToRepeatIsTransient) {
  std::set<Errc> transient;
  for (int code = 1; code <= static_cast<int>(Errc::kReplaced); ++code) {
    if (Error(static_cast<Errc>(code), "").is_transient())
      transient.insert(static_cast<Errc>(code));
  }
  EXPECT_EQ(transient, (std::set<Errc>{Errc::kUnreachable, Errc::kTimeout}));
}

TEST(ErrorTest, EveryCodeAndReasonHasItsOwnWords) {
  std::set<std::string> words;
  for (int code = 1; code <= static_cast<int>(Errc::kReplaced); ++code) {
    words.insert(make_error_code(static_cast<Errc>(code)).message());
  }
  EXPECT_EQ(words.size(), 7U);
  words.clear();
  for (int reason = 0; reason <= static_cast<int>(LossReason::kAbandoned); ++reason) {
    words.insert(to_string(static_cast<LossReason>(reason)));
  }
  EXPECT_EQ(words.size(), 9U);
  EXPECT_FALSE(words.contains("unknown"));
}

}  // namespace
}  // namespace simba
