#include "core/deadlines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace simba::core {
namespace {

using namespace std::chrono_literals;

LocalTime at(milliseconds time) { return LocalTime{time}; }

TEST(DeadlinesTest, OfNobodyAreNever) {
  Deadlines deadlines;
  EXPECT_EQ(deadlines.soonest(), LocalTime::max());
  EXPECT_EQ(deadlines.pop_due(LocalTime::max()), nullptr);
}

TEST(DeadlinesTest, ComeInOrder) {
  Deadlines deadlines;
  Timed a, b, c;
  deadlines.set(a, at(30ms));
  deadlines.set(b, at(10ms));
  deadlines.set(c, at(20ms));
  EXPECT_EQ(deadlines.soonest(), at(10ms));
  EXPECT_EQ(deadlines.pop_due(at(9ms)), nullptr);
  EXPECT_EQ(deadlines.pop_due(at(25ms)), &b);
  EXPECT_EQ(deadlines.pop_due(at(25ms)), &c);
  EXPECT_EQ(deadlines.pop_due(at(25ms)), nullptr);
  EXPECT_EQ(deadlines.pop_due(at(30ms)), &a);
  EXPECT_EQ(deadlines.size(), 0U);
}

TEST(DeadlinesTest, ANewOneReplacesTheOld) {
  Deadlines deadlines;
  Timed a, b;
  deadlines.set(a, at(10ms));
  deadlines.set(b, at(20ms));
  deadlines.set(a, at(30ms));
  EXPECT_EQ(deadlines.soonest(), at(20ms));
  deadlines.set(a, at(5ms));
  EXPECT_EQ(deadlines.soonest(), at(5ms));
  EXPECT_EQ(deadlines.size(), 2U);
}

TEST(DeadlinesTest, NeverRemoves) {
  Deadlines deadlines;
  Timed a;
  deadlines.set(a, at(10ms));
  deadlines.set(a, LocalTime::max());
  EXPECT_EQ(deadlines.size(), 0U);
  EXPECT_EQ(a.heap_slot, Timed::kNone);
  deadlines.set(a, LocalTime::max());  // and again
  deadlines.remove(a);
  EXPECT_EQ(deadlines.size(), 0U);
}

TEST(DeadlinesTest, OneThatWasTakenOutCanBeSetAgain) {
  Deadlines deadlines;
  Timed a;
  deadlines.set(a, at(10ms));
  EXPECT_EQ(deadlines.pop_due(at(10ms)), &a);
  deadlines.set(a, at(10ms));
  EXPECT_EQ(deadlines.pop_due(at(10ms)), &a);
}

TEST(DeadlinesTest, ManyAtTheSameTimeAllCome) {
  Deadlines deadlines;
  std::vector<Timed> many(100);
  for (Timed& timed : many) deadlines.set(timed, at(1ms));
  int popped = 0;
  while (deadlines.pop_due(at(1ms))) ++popped;
  EXPECT_EQ(popped, 100);
}

// Against the obvious structure.
TEST(DeadlinesTest, AgreeWithASortedMapWhateverIsDoneToThem) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random{seed};
    Deadlines deadlines;
    std::vector<Timed> everybody(40);
    std::multimap<LocalTime, Timed*> model;
    const auto erase = [&](Timed* who) {
      std::erase_if(model, [&](const auto& entry) { return entry.second == who; });
    };
    for (int step = 0; step < 3000; ++step) {
      Timed& who = everybody[random() % everybody.size()];
      const LocalTime when = at(milliseconds{static_cast<int>(random() % 50)});
      switch (random() % 5) {
        case 0:
          deadlines.remove(who);
          erase(&who);
          break;
        case 1: {
          Timed* due = deadlines.pop_due(when);
          if (model.empty() || model.begin()->first > when) {
            ASSERT_EQ(due, nullptr);
            break;
          }
          ASSERT_NE(due, nullptr);
          const auto it = std::find_if(model.begin(), model.end(),
                                       [&](const auto& entry) { return entry.second == due; });
          ASSERT_NE(it, model.end());
          ASSERT_EQ(it->first, model.begin()->first);  // among equals any may come first
          model.erase(it);
          break;
        }
        default:
          deadlines.set(who, when);
          erase(&who);
          model.emplace(when, &who);
      }
      ASSERT_EQ(deadlines.size(), model.size());
      ASSERT_EQ(deadlines.soonest(), model.empty() ? LocalTime::max() : model.begin()->first);
    }
  }
}

}  // namespace
}  // namespace simba::core
