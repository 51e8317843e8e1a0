#include "stores/zookeeper/places.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

namespace simba::zookeeper {
namespace {

using namespace std::chrono_literals;
using Keys = std::vector<Places::Key>;

class PlacesTest : public ::testing::Test {
 protected:
  static Place place(const char* wire_id, const char* node, Token token = 7) {
    return {"m", wire_id, node, token, 1};
  }
  Term term(milliseconds lease) const { return {now, now + lease / 2, now + lease, 0}; }
  std::vector<std::string> expired() {
    std::vector<std::string> ids;
    for (const Place& each : places.take_expired(now, now + 1s)) ids.push_back(each.wire_id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  using Ids = std::vector<std::string>;
  Ids lost(LocalTime at) {
    Ids ids;
    for (const Lost& each : places.take_lost(at)) {
      EXPECT_EQ(each.mutex, "m");
      ids.push_back(each.wire_id);
    }
    return ids;
  }

  LocalTime now = LocalTime{} + 1h;
  Places places;
};

TEST_F(PlacesTest, AnOwnerThatDoesNotRenewExpiresAfterItsLease) {
  places.add(place("a", "n1"), 10s, now);
  ASSERT_TRUE(places.grant("m", "a", term(10s)));
  now += 10s;
  EXPECT_EQ(expired(), Ids{});
  now += 1ms;
  EXPECT_EQ(expired(), Ids{"a"});
  EXPECT_FALSE(places.grant("m", "a", term(10s))) << "it is on its way out";
  EXPECT_FALSE(places.begin_renewal("m", "a", 7, now));
}

TEST_F(PlacesTest, WhatCouldNotBeDeletedIsNamedAgain) {
  places.add(place("a", "n1"), 1s, now);
  now += 2s;
  EXPECT_EQ(expired(), Ids{"a"});
  EXPECT_EQ(expired(), Ids{});
  now += 1s + 1ms;
  EXPECT_EQ(expired(), Ids{"a"});
  places.erase("m", "a");
  now += 1min;
  EXPECT_EQ(expired(), Ids{});
  EXPECT_EQ(places.next_due(), LocalTime::max());
}

TEST_F(PlacesTest, ARenewalUnderWayHoldsOffTheEnd) {
  places.add(place("a", "n1"), 10s, now);
  places.grant("m", "a", term(10s));
  now += 10s;
  ASSERT_TRUE(places.begin_renewal("m", "a", 7, now));
  now += 1s;
  EXPECT_EQ(expired(), Ids{});
  places.end_renewal("m", "a");
  EXPECT_TRUE(places.grant("m", "a", term(10s)));
  now += 9s;
  EXPECT_EQ(expired(), Ids{});
  now += 2s;
  EXPECT_EQ(expired(), Ids{"a"});
}

TEST_F(PlacesTest, AWaiterNobodyCaresForExpiresAndOneWithAWatchDoesNot) {
  places.add_watch(Places::key("m", "watched"));
  places.add(place("watched", "n1"), 1s, now);
  places.add(place("alone", "n2"), 1s, now);
  now += 1h;
  EXPECT_EQ(expired(), Ids{"alone"});
  places.drop_watch(Places::key("m", "watched"), now);
  now += 1s + 1ms;
  EXPECT_EQ(expired(), (Ids{"alone", "watched"}));
}

TEST_F(PlacesTest, AWaiterThatAsksAgainStays) {
  places.add(place("a", "n1"), 1s, now);
  for (int i = 0; i < 5; ++i) {
    now += 900ms;
    ASSERT_TRUE(places.keep("m", "a", 1s, now));
    EXPECT_EQ(expired(), Ids{});
  }
}

TEST_F(PlacesTest, AnEvictedOwnerKeepsItsEndAndNothingElse) {
  places.add(place("a", "n1"), 10s, now);
  places.grant("m", "a", term(10s));
  places.evict("m", "n1");
  EXPECT_FALSE(places.begin_renewal("m", "a", 7, now));
  EXPECT_FALSE(places.keep("m", "a", 10s, now));
  EXPECT_EQ(places.term("m", "a", 7, now), std::nullopt);
  EXPECT_EQ(expired(), Ids{});
  now += 10s + 1ms;
  EXPECT_EQ(expired(), Ids{"a"});
}

TEST_F(PlacesTest, AnEvictedPlaceThatOwnsNothingYetIsOverAtOnce) {
  places.add_watch(Places::key("m", "a"));
  places.add(place("a", "n1"), 10s, now);
  places.evict("m", "n1");
  places.evict("m", "n1");
  EXPECT_FALSE(places.grant("m", "a", term(10s)));
  EXPECT_FALSE(places.keep("m", "a", 10s, now));
  EXPECT_LT(places.next_due(), now);
  EXPECT_EQ(expired(), Ids{"a"});
  places.evict("m", "n1");
  EXPECT_GT(places.next_due(), now) << "it is being deleted";
}

TEST_F(PlacesTest, ATermIsOfItsTokenAndEnds) {
  places.add(place("a", "n1"), 10s, now);
  EXPECT_FALSE(places.term("m", "a", 0, now)) << "not granted";
  places.grant("m", "a", term(10s));
  EXPECT_TRUE(places.term("m", "a", 0, now));
  EXPECT_TRUE(places.term("m", "a", 7, now));
  EXPECT_FALSE(places.term("m", "a", 8, now));
  EXPECT_FALSE(places.term("m", "b", 7, now));
  EXPECT_FALSE(places.term("m", "a", 7, now + 11s));
}

TEST_F(PlacesTest, ATermThatIsOverIsNotGoneOnWith) {
  places.add(place("a", "n1"), 10s, now);
  places.grant("m", "a", term(10s));
  now += 10s;
  EXPECT_TRUE(places.keep("m", "a", 10s, now));
  now += 1ms;
  EXPECT_FALSE(places.keep("m", "a", 10s, now)) << "although its node is still there";
}

TEST_F(PlacesTest, WhatWasReadAMomentAgoIsAnAnswerOnceAndNotLater) {
  const Places::Key key = Places::key("m", "a");
  places.put_line(key, {{"n1"}, {7, 0}}, now);
  EXPECT_FALSE(places.take_line("m", "a", now)) << "no such place";
  places.add(place("a", "n1"), 10s, now);
  places.put_line(key, {{"n1"}, {7, 3}}, now);
  const auto line = places.take_line("m", "a", now + 100ms);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->container.version, 3);
  EXPECT_FALSE(places.take_line("m", "a", now)) << "once";
  places.put_line(key, {{"n1"}, {7, 3}}, now);
  EXPECT_FALSE(places.take_line("m", "a", now + 101ms)) << "too old";
}

TEST_F(PlacesTest, OneNodeIsMadeForAWireId) {
  EXPECT_EQ(places.begin_join("m", "a", now + 1s), Places::Doubt::kNone);
  EXPECT_EQ(places.begin_join("m", "a", now + 1s), Places::Doubt::kUnderWay);
  places.set_doubt("m", "a", Places::Doubt::kAmbiguous, now + 1s);
  EXPECT_EQ(places.begin_join("m", "a", now + 1s), Places::Doubt::kAmbiguous);
  places.add(place("a", "n1"), 1s, now);
  EXPECT_EQ(places.begin_join("m", "a", now + 1s), Places::Doubt::kNone) << "the doubt is over";
  places.end_ambiguity("m", "a");
  EXPECT_EQ(places.begin_join("m", "a", now + 1s), Places::Doubt::kUnderWay)
      << "it was not looked for";
  places.set_doubt("m", "a", Places::Doubt::kAmbiguous, now + 1s);
  places.end_ambiguity("m", "a");
  EXPECT_EQ(places.begin_join("m", "a", now + 1s), Places::Doubt::kNone);
}

TEST_F(PlacesTest, WhatIsInDoubtIsGivenUpWhenNobodyAsksForIt) {
  using Doubt = Places::Doubt;
  places.begin_join("m", "a/b", now + 1s);
  EXPECT_TRUE(lost(now + 1h).empty()) << "its creation will be answered";
  places.set_doubt("m", "a/b", Doubt::kAmbiguous, now + 1s);
  EXPECT_EQ(places.next_due(), now + 1s);
  EXPECT_TRUE(lost(now + 999ms).empty());
  EXPECT_EQ(places.begin_join("m", "a/b", now + 2s), Doubt::kAmbiguous) << "somebody asks";
  EXPECT_TRUE(lost(now + 1s).empty());
  EXPECT_EQ(lost(now + 2s), Ids{"a/b"});
  EXPECT_EQ(places.next_due(), LocalTime::max()) << "once";
  EXPECT_EQ(places.begin_join("m", "a/b", now + 5s), Doubt::kGivenUp);
  EXPECT_FALSE(places.set_doubt("m", "a/b", Doubt::kUnderWay, now + 5s));
  places.not_found_out({"m", "a/b"}, now + 3s);
  EXPECT_EQ(places.next_due(), now + 3s);
  EXPECT_EQ(lost(now + 3s), Ids{"a/b"});
  places.end_ambiguity("m", "a/b");
  places.not_found_out({"m", "a/b"}, now + 4s);
  EXPECT_EQ(places.next_due(), LocalTime::max()) << "an answer of an earlier session";
  EXPECT_EQ(places.begin_join("m", "a/b", now + 5s), Doubt::kNone);
}

TEST_F(PlacesTest, WhatIsGivenUpIsNoPlaceForWhoFindsItMeanwhile) {
  places.begin_join("m", "a", now + 1s);
  places.set_doubt("m", "a", Places::Doubt::kAmbiguous, now + 1s);
  ASSERT_EQ(lost(now + 1s), Ids{"a"});
  places.add(place("a", "n1"), 10s, now);
  EXPECT_FALSE(places.keep("m", "a", 10s, now));
  EXPECT_FALSE(places.grant("m", "a", term(10s)));
  now += 10s + 1ms;
  EXPECT_EQ(expired(), Ids{"a"}) << "should its deletion have failed";
}

TEST_F(PlacesTest, AWaiterHearsOfTheNodeBeforeItOnce) {
  places.add(place("a", "n1"), 1min, now);
  places.add(place("b", "n2"), 1min, now);
  places.add(place("c", "n3"), 1min, now);
  using Hearing = Places::Hearing;
  EXPECT_EQ(places.watch_node("m", "b", "n1"), Hearing::kNew);
  EXPECT_EQ(places.watch_node("m", "b", "n1"), Hearing::kAlready);
  EXPECT_EQ(places.watch_node("m", "c", "n2"), Hearing::kNew);
  EXPECT_EQ(places.changed("m", "n1"), Keys{"m/b"});
  EXPECT_EQ(places.changed("m", "n1"), Keys{});
  EXPECT_EQ(places.watch_node("m", "c", "n1"), Hearing::kNew) << "another one";
  EXPECT_EQ(places.changed("m", "n2"), Keys{});
  EXPECT_EQ(places.changed("m", "n1"), Keys{"m/c"});
}

TEST_F(PlacesTest, AHintBeforeTheWatchIsNotLost) {
  const Places::Key key = Places::key("m", "b");
  places.add(place("b", "n2"), 1min, now);
  places.watch_node("m", "b", "n1");
  EXPECT_FALSE(places.take_missed(key));
  places.changed("m", "n1");
  places.add_watch(key);
  EXPECT_TRUE(places.take_missed(key));
  EXPECT_FALSE(places.take_missed(key));
}

// Behind an owner that stays for months, everybody who waited for a while would stay with it.
TEST_F(PlacesTest, WhoGaveUpWaitingLeavesNothingBehind) {
  const auto wait_and_give_up = [&](int i) {
    const std::string id = "w~" + std::to_string(i);
    const Places::Key key = Places::key("m", id);
    places.add_watch(key);
    places.add({"m", id, "n" + std::to_string(1'000'000 + i), 7, 1}, 1min, now);
    EXPECT_EQ(places.watch_node("m", id, "n0"), Places::Hearing::kNew);
    places.drop_watch(key, now);
    places.erase("m", id);
  };
  wait_and_give_up(0);
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 1; i < 20'000; ++i) wait_and_give_up(i);
  EXPECT_LT(mallinfo2().uordblks, before + 100'000);
  places.add(place("b", "n1"), 1min, now);
  EXPECT_EQ(places.watch_node("m", "b", "n0"), Places::Hearing::kNew);
  EXPECT_EQ(places.changed("m", "n0"), Keys{"m/b"});
}

TEST(PlacesLimit, NoMoreNodesAreWatchedThanAServerTakesBackAfterAReconnect) {
  using Hearing = Places::Hearing;
  Places places(10, 40);  // "m/n1" and what stands before and around it take 18 bytes
  const LocalTime now = LocalTime{} + 1h;
  for (const char* id : {"a", "b", "c", "d"}) places.add({"m", id, id, 1, 1}, 1min, now);
  EXPECT_EQ(places.watch_node("m", "a", "n1"), Hearing::kNew);
  EXPECT_EQ(places.watch_node("m", "b", "n2"), Hearing::kNew);
  EXPECT_EQ(places.watch_node("m", "c", "n3"), Hearing::kFull);
  EXPECT_EQ(places.watch_leader("m", "n3"), Hearing::kFull);
  EXPECT_EQ(places.watch_node("m", "d", "n1"), Hearing::kNew) << "the same node costs nothing";
  EXPECT_TRUE(places.hears("m/a"));
  EXPECT_FALSE(places.hears("m/c")) << "it has to poll";
  places.erase("m", "b");
  EXPECT_EQ(places.watch_node("m", "c", "n3"), Hearing::kFull) << "the driver still watches n2";
  EXPECT_EQ(places.changed("m", "n2"), Keys{});
  EXPECT_EQ(places.watch_node("m", "c", "n3"), Hearing::kNew);
  EXPECT_TRUE(places.hears("m/c"));
  places.forget_node("m", "c");
  EXPECT_EQ(places.watch_leader("m", "n4"), Hearing::kNew) << "its room is free again";
  places.clear();
  places.add({"m", "a", "a", 1, 1}, 1min, now);
  EXPECT_EQ(places.watch_node("m", "a", "n5"), Hearing::kNew);
}

TEST_F(PlacesTest, TheEndOfTheSessionEndsAll) {
  places.add(place("a", "n1"), 1min, now);
  places.grant("m", "a", term(10s));
  places.begin_join("m", "b", now + 1s);
  EXPECT_EQ(places.clear(), Keys{"m/a"});
  EXPECT_TRUE(places.is_empty());
  EXPECT_EQ(places.at("m", "n1"), std::nullopt);
  EXPECT_EQ(places.begin_join("m", "b", now + 1s), Places::Doubt::kNone);
}

}  // namespace
}  // namespace simba::zookeeper
