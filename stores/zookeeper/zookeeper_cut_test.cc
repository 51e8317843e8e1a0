#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "stores/zookeeper/fault_fixture.h"

// A network that fails, on servers of our own: lost connections and answers, sessions that end
// meanwhile.
namespace simba::zookeeper {
namespace {

using ::testing::HasSubstr;

class CutOffTest : public FaultTest {
 protected:
  // The server makes the node, and nobody hears of it.
  void lose_take(Store& store, const std::string& id) {
    const std::size_t before = queue().size();
    relay->mute();
    std::this_thread::sleep_for(10ms);
    const Claim claim{m, id, 0, 0, 60s, 30s};
    static_cast<void>(store.contend({&claim, 1}, soon(1s)));
    ASSERT_TRUE(eventually([&] { return queue().size() > before; }));
  }
};

// What a client hears of a server that has not heard of the nodes yet: queues are empty, and a sync
// fails.
struct LaggingServer {
  std::string heard(std::string_view said) {
    std::string out;
    while (said.size() >= kBody) {
      std::string answer(said.substr(0, kNumber + read(said)));
      said.remove_prefix(answer.size());
      if (answer.ends_with(number(container.size()) + container)) {
        answer.replace(kError, kNumber, number(static_cast<std::size_t>(ZCONNECTIONLOSS)));
        ++syncs;
      } else if (answer.find("-latch-") != answer.npos && answer.size() > kBody + kStat) {
        answer.replace(kBody, answer.size() - kBody - kStat, number(0));
        answer.replace(0, kNumber, number(answer.size() - kNumber));
      }
      out += answer;
    }
    return out.append(said);
  }

  const std::string container;
  std::atomic<int> syncs{0};

 private:
  // Of an answer: its length, the number of the request, the last transaction, an error; the body.
  static constexpr std::size_t kNumber = 4, kError = 16, kBody = 20, kStat = 68;
  static std::string number(std::size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
  }
  static std::size_t read(std::string_view said) {
    std::size_t value = 0;
    for (const char byte : said.substr(0, kNumber)) {
      value = value << 8 | static_cast<unsigned char>(byte);
    }
    return value;
  }
};

TEST_F(CutOffTest, ATermOutlivesAConnectionThatComesBackInTime) {
  start();
  put_relay();
  const auto store = open_alone(options(30s));
  const Token token = take(*store, m, "a~1").owner.token;
  relay->cut();
  EXPECT_THAT(error_of([&] {
                const Claim claim{m, "a~1", token, 0, 60s, 30s};
                const Answers answers = store->contend({&claim, 1}, soon(300ms));
                if (const auto* error = std::get_if<Error>(&answers[0])) throw Error(*error);
              }),
              HasSubstr("zookeeper at " + options(4s).servers + ": "));
  relay->mend();
  EXPECT_TRUE(eventually([&] {
    const Claim claim{m, "a~1", token, 0, 60s, 30s};
    try {
      const Answers answers = store->contend({&claim, 1}, soon(1s));
      const auto* seen = std::get_if<Observation>(&answers[0]);
      return seen && owns(*seen, "a~1") && seen->owner.token == token;
    } catch (const Error&) {
      return false;
    }
  }));
}

// The server makes the node, and nobody hears of it.
TEST_F(CutOffTest, AmbiguousCreateATakeWhoseAnswerWasLostFindsItsNodeAndMakesNoSecond) {
  start();
  put_relay();
  const auto store = open_alone(options(30s));
  make_container(*store);
  relay->mute();
  std::this_thread::sleep_for(10ms);
  const Claim claim{m, "a~1", 0, 0, 60s, 30s};
  const Answers lost = store->contend({&claim, 1}, soon(1s));
  const auto* error = std::get_if<Error>(&lost[0]);
  ASSERT_TRUE(error && error->is_transient());
  ASSERT_TRUE(eventually([&] { return queue().size() == 1; })) << "the server has made it";
  relay->mend();
  Observation seen;
  ASSERT_TRUE(eventually([&] {
    try {
      seen = take(*store, m, "a~1");
      return true;
    } catch (const Error&) {
      return false;
    }
  }));
  EXPECT_TRUE(owns(seen, "a~1"));
  ASSERT_EQ(queue().size(), 1U) << "a second node";
  EXPECT_EQ(seen.owner.token, static_cast<Token>(raw().stat(path(m) + '/' + queue()[0]).czxid));
}

TEST_F(CutOffTest, AReleaseAfterALostTakeLeavesNothingBehind) {
  start();
  put_relay();
  const auto store = open_alone(options(30s));
  make_container(*store);
  relay->mute();
  std::this_thread::sleep_for(10ms);
  const Claim claim{m, "a~1", 0, 0, 60s, 30s};
  static_cast<void>(store->contend({&claim, 1}, soon(1s)));
  ASSERT_TRUE(eventually([&] { return queue().size() == 1; }));
  relay->mend();
  EXPECT_TRUE(eventually([&] { return error_of([&] { release(*store, m, "a~1"); }).empty(); }));
  EXPECT_TRUE(queue().empty());
}

// The next server that the driver finds may not have heard of the node, and a sync that was lost
// with the connection says nothing of that.
TEST_F(CutOffTest, WhatAServerShowsAfterASyncThatFailedIsNotBelieved) {
  start();
  put_relay();
  const auto store = open_alone(options(30s));
  make_container(*store);
  for (const bool releases : {false, true}) {
    const std::string id = releases ? "b~1" : "a~1";
    const auto ask = [&] { releases ? release(*store, m, id) : void(take(*store, m, id)); };
    lose_take(*store, id);
    LaggingServer lagging{path(m)};
    relay->lie([&](std::string_view said) { return lagging.heard(said); });
    relay->reset();
    std::string why;
    EXPECT_TRUE(eventually([&] {
      const int before = lagging.syncs;
      why = error_of(ask);
      return lagging.syncs > before;
    }));
    relay->mend();
    EXPECT_THAT(why, HasSubstr("look for a node"));
    EXPECT_EQ(queue().size(), 1U) << "a second node";
    ASSERT_TRUE(eventually([&] { return error_of(ask).empty(); }));
    EXPECT_EQ(queue().size(), releases ? 0U : 1U);
    release(*store, m, id);
  }
}

// Of an earlier session of the process, of which the servers have not heard yet that it is over.
TEST_F(CutOffTest, ANodeWhoseAnswerWasLostIsFoundBehindAnOlderOneOfItsWireId) {
  start();
  put_relay();
  const auto store = open_alone(options(30s));
  make_container(*store);
  for (const bool releases : {false, true}) {
    const std::string id = releases ? "b~1" : "a~1";
    ASSERT_EQ(raw().create(path(m) + '/' + latch_stem(id), id, ZOO_EPHEMERAL_SEQUENTIAL), ZOK);
    lose_take(*store, id);
    relay->mend();
    if (!releases) {
      Observation seen;
      ASSERT_TRUE(
          eventually([&] { return error_of([&] { seen = take(*store, m, id); }).empty(); }));
      EXPECT_FALSE(owns(seen, id));
      EXPECT_EQ(queue().size(), 2U) << "a third node";
      raw().remove(path(m) + '/' + queue().at(0));
      EXPECT_TRUE(owns(take(*store, m, id), id));
    }
    EXPECT_TRUE(eventually([&] { return error_of([&] { release(*store, m, id); }).empty(); }));
    EXPECT_TRUE(queue().empty());
  }
}

// Who wanted it gave up during the outage, and the engine has forgotten the wire id by its end.
TEST_F(CutOffTest, ALostTakeThatNobodyRepeatsOrReleasesLeavesNothingBehindEither) {
  start();
  put_relay();
  const auto store = open_alone(options(30s)), other = connect_straight();
  make_container(*store);
  relay->mute();
  std::this_thread::sleep_for(10ms);
  const Claim claim{m, "a~1", 0, 0, 1s, 500ms};
  static_cast<void>(store->contend({&claim, 1}, soon(1s)));
  ASSERT_TRUE(eventually([&] { return queue().size() == 1; }));
  EXPECT_EQ(take(*other, m, "b~1").owner.id, "a~1");
  relay->cut();
  std::this_thread::sleep_for(2s);
  relay->mend();
  EXPECT_TRUE(eventually([&] { return owns(take(*other, m, "b~1"), "b~1"); }, 20s));
}

TEST_F(CutOffTest, ASessionThatEndsDuringACreationLeavesNoOrphan) {
  start();
  put_relay();
  const auto store = open_alone(options(8s));
  make_container(*store);
  relay->mute();
  std::this_thread::sleep_for(10ms);
  const Claim claim{m, "a~1", 0, 0, 60s, 30s};
  static_cast<void>(store->contend({&claim, 1}, soon(500ms)));
  ASSERT_TRUE(eventually([&] { return queue().size() == 1; }));
  relay->cut();
  ASSERT_TRUE(eventually([&] { return queue().empty(); })) << "the session ends on the server";
  relay->mend();
  Observation seen;
  ASSERT_TRUE(eventually([&] { return error_of([&] { seen = take(*store, m, "a~1"); }).empty(); }));
  EXPECT_TRUE(owns(seen, "a~1"));
  EXPECT_EQ(queue().size(), 1U);
}

TEST_F(CutOffTest, AnExpiredSessionEndsItsTermsAndWakesItsWaiters) {
  start();
  put_relay();
  const auto store = open_alone(options(8s)), straight = connect_straight();
  const Token token = take(*store, m, "a~1").owner.token;
  take(*straight, m, "b~1");
  std::atomic<int> wakes{0};
  const auto watch = store->watch(m, "c~1", [&] { ++wakes; });
  take(*store, m, "c~1");
  EXPECT_TRUE(watch->is_live());
  relay->cut();
  EXPECT_TRUE(eventually([&] { return !watch->is_live(); }));
  ASSERT_TRUE(eventually([&] { return owns(take(*straight, m, "b~1"), "b~1"); }));
  relay->mend();
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "it has to queue again";
  Observation seen;
  ASSERT_TRUE(
      eventually([&] { return error_of([&] { seen = renew(*store, m, "a~1", token); }).empty(); }));
  EXPECT_EQ(seen.owner.id, "b~1") << "an old term is never revived";
  EXPECT_EQ(take(*store, m, "c~1").owner.id, "b~1");
  EXPECT_EQ(queue().size(), 2U);
}

// The lease has run out here before the session ends there, however the connection was lost.
TEST_F(CutOffTest, AnOwnerCutOffIsReleasedBeforeItsSessionEndsOnTheServer) {
  start();
  for (const bool says_nothing : {false, true}) {
    put_relay();
    ClientOptions chosen;
    chosen.contend.ttl = 2500ms;
    chosen.contend.transition = 1500ms;
    std::atomic<std::int64_t> lost{0};
    const Client client{open_alone(options(6s)), chosen};
    MutexContendService service{
        client, make_contender(m, {.on_acquired = {}, .on_released = [&](const MutexState&) {
                                     lost = BootClock::now().time_since_epoch().count();
                                   }})};
    service.start();
    ASSERT_TRUE(eventually([&] { return service.is_in_ttl(); }));
    std::this_thread::sleep_for(milliseconds{says_nothing ? 1850 : 2650});
    EXPECT_TRUE(service.is_in_ttl()) << "a healthy owner does not leave its ttl";
    if (says_nothing) {
      relay->stall();
    } else {
      relay->cut();
    }
    while (!queue().empty()) EXPECT_NE(queue().size(), 2U);
    const std::int64_t gone = BootClock::now().time_since_epoch().count();
    EXPECT_FALSE(service.is_owner());
    EXPECT_FALSE(service.is_in_ttl());
    ASSERT_TRUE(eventually([&] { return lost != 0; }));
    EXPECT_LT(lost, gone) << "its session ended " << (lost - gone) / 1'000'000 << " ms before";
    relay->mend();
    ASSERT_TRUE(eventually([&] { return service.is_in_ttl(); })) << "it goes on by itself";
    service.stop();
    EXPECT_TRUE(queue().empty());
  }
}

// What it read was true when it was read. Meanwhile the next owner came, and was evicted too.
TEST_F(CutOffTest, AnEvictionOfWhoHasGoneMeanwhileLeavesTheEvictionOfTheNextAlone) {
  start();
  put_relay();
  const auto store = connect_straight(), other = connect_straight(),
             late = open_alone(options(30s));
  const Token gone = take(*store, m, "gone~1").owner.token;
  EXPECT_EQ(observe(*other, m).owner.id, "gone~1");
  EXPECT_TRUE(observe(*late, m + "-else").is_free()) << "it has a session";
  Observation next;
  bool is_done = false;  // of the relay's thread, until the relay is mended
  relay->lie([&](std::string_view said) {
    if (!is_done && said.find("gone~1") != said.npos) {
      is_done = true;
      release(*store, m, "gone~1");
      next = take(*store, m, "next~1");
      other->evict(m, "next~1", next.owner.token, Eviction::kKeepLease, soon());
    }
    return std::string(said);
  });
  EXPECT_EQ(late->evict(m, "gone~1", gone, Eviction::kKeepLease, soon()).owner.id, "");
  relay->mend();
  ASSERT_TRUE(is_done);
  EXPECT_EQ(raw().data(path(m)), queue().at(0)) << "the container names who was evicted last";
  EXPECT_EQ(renew(*store, m, "next~1", next.owner.token).owner.id, "");
}

// Waiters hang on watches; the driver sets them again after each reconnect, all in one request.
// With SIMBA_TEST_WAITERS=15000 they are more than fit, and those who do not are not live.
TEST_F(CutOffTest, WaitersHearOfAReleaseAfterAReconnect) {
  start();
  put_relay();
  const auto store = open_alone(options(60s)), owner = connect_straight(60s);
  const char* given = std::getenv("SIMBA_TEST_WAITERS");  // NOLINT(concurrency-mt-unsafe)
  const std::size_t waiters = given ? std::stoul(given) : 200;
  std::atomic<std::size_t> wakes{0};
  std::vector<std::unique_ptr<Watch>> watches;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < waiters; ++i) names.push_back(m + '.' + std::to_string(i));
  for (const std::string& name : names) {
    take(*owner, name, "o~1");
    watches.push_back(store->watch(name, "w~1", [&] { ++wakes; }));
    take(*store, name, "w~1");
  }
  const auto live = [&] {
    return static_cast<std::size_t>(std::count_if(
        watches.begin(), watches.end(), [](const auto& watch) { return watch->is_live(); }));
  };
  const std::size_t heard = live();
  EXPECT_GE(heard, std::min<std::size_t>(10'000, waiters));
  relay->cut();
  ASSERT_TRUE(eventually([&] { return live() == 0; }));
  for (std::size_t i = 0; i < waiters / 2; ++i) release(*owner, names[i], "o~1");
  relay->mend();
  EXPECT_TRUE(eventually([&] { return wakes >= waiters / 2; }, 60s)) << wakes;
  for (std::size_t i = waiters / 2; i < waiters; ++i) release(*owner, names[i], "o~1");
  EXPECT_TRUE(eventually([&] { return wakes == heard; })) << wakes << " of " << heard;
}

}  // namespace
}  // namespace simba::zookeeper
