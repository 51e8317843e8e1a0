#include "core/strand.h"

#include <gtest/gtest.h>

#include <string>

namespace simba::core {
namespace {

MutexState change(const std::string& before, const std::string& after, const std::string& self) {
  MutexState state = MutexState::none();
  state.before.id = before;
  state.after.id = after;
  state.self = self;
  return state;
}
MutexState acquired(const std::string& id) { return change("", id, id); }
MutexState released(const std::string& id) { return change(id, "", id); }

TEST(StrandTest, IsRunByTheOneWhoFindsItIdle) {
  Strand strand;
  EXPECT_TRUE(strand.push(change("", "x", "me")));
  EXPECT_FALSE(strand.push(change("x", "y", "me")));
  EXPECT_TRUE(strand.next());
  EXPECT_FALSE(strand.push(change("y", "z", "me")));  // somebody is still at it
  EXPECT_TRUE(strand.next());
  EXPECT_TRUE(strand.next());
  EXPECT_FALSE(strand.next());
  EXPECT_TRUE(strand.push(change("z", "", "me")));
}

TEST(StrandTest, TellsInOrder) {
  Strand strand;
  strand.push(change("", "x", "me"));
  strand.push(change("x", "y", "me"));
  EXPECT_EQ(strand.next()->state.after.id, "x");
  strand.push(change("y", "z", "me"));
  EXPECT_EQ(strand.next()->state.after.id, "y");
  EXPECT_EQ(strand.next()->state.after.id, "z");
}

TEST(StrandTest, ATermThatEndedBeforeItWasToldIsNotTold) {
  Strand strand;
  strand.push(acquired("me~1"));
  strand.push(released("me~1"));
  const auto begin = strand.next();
  ASSERT_TRUE(begin);
  EXPECT_TRUE(begin->silent);
  const auto end = strand.next();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->silent);
  EXPECT_TRUE(end->state.is_released());  // but its work counts as done
  EXPECT_FALSE(strand.next());
}

TEST(StrandTest, ATermWhoseBeginningWasToldIsToldToItsEnd) {
  Strand strand;
  strand.push(acquired("me~1"));
  EXPECT_FALSE(strand.next()->silent);
  strand.push(released("me~1"));
  EXPECT_FALSE(strand.next()->silent);
}

TEST(StrandTest, OnlyThePassedOfTwoTermsIsSkipped) {
  Strand strand;
  strand.push(acquired("me~1"));
  strand.push(released("me~1"));
  strand.push(acquired("me~2"));
  EXPECT_TRUE(strand.next()->silent);
  EXPECT_TRUE(strand.next()->silent);
  const auto second = strand.next();
  EXPECT_FALSE(second->silent);
  EXPECT_EQ(second->state.self, "me~2");
}

TEST(StrandTest, TheChangesOfOthersAreNeverSkipped) {
  Strand strand;
  strand.push(change("", "other~1", "me~1"));
  strand.push(change("other~1", "", "me~1"));
  EXPECT_FALSE(strand.next()->silent);
  EXPECT_FALSE(strand.next()->silent);
}

TEST(StrandTest, TheEndOfAnotherTermSilencesNothing) {
  Strand strand;
  strand.push(acquired("me~2"));
  strand.push(released("me~1"));
  EXPECT_FALSE(strand.next()->silent);
  EXPECT_FALSE(strand.next()->silent);
}

}  // namespace
}  // namespace simba::core
