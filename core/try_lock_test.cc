#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simba/async.h"
#include "simba/locker.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"
#include "testing/gaps.h"

// A try_lock that others come in between of.
//
// Wherever the calling thread holds no lock and is about to take one, another thread may be faster.
// Here that other thread is a function, run on the one thread there is, right there: each round
// tries another of these places, so that every order of the critical sections happens, and none by
// luck.
namespace simba {
namespace {

using namespace std::chrono_literals;
using testing::FakeExecutor;
using testing::FaultyStore;
using testing::Gaps;
using testing::HeldCall;

ClientOptions in_virtual_time(const std::shared_ptr<FakeExecutor>& executor) {
  ClientOptions options;
  options.executor = executor;
  options.contend.jitter = {0ms, 0ms};
  return options;
}

// One holds, one tries.
struct Scene {
  const std::shared_ptr<FakeExecutor> executor = std::make_shared<FakeExecutor>();
  const std::shared_ptr<Store> rows = make_memory(executor->store_clock());
  const std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(rows);
  Client client{store, in_virtual_time(executor)};
  SimbaLocker holder{client, "m"}, trier{client, "m"};
  std::vector<Acquired> of_another;  // what it was told

  explicit Scene(bool another_waits) {
    holder.lock();
    if (another_waits) {
      acquire_async(client, "m", {},
                    [this](Acquired told) { of_another.push_back(std::move(told)); });
      executor->run();
    }
    executor->hold_calls();
  }
  std::string owner() const {
    const std::string_view name = "m";
    const auto seen = std::get<Observation>(rows->observe({&name, 1}, {}).at(0));
    return seen.is_free() ? "" : seen.owner.id;
  }
  // Who comes after the trier: the one who waits, or nobody.
  std::string next() const {
    return of_another.empty() ? "" : of_another.front().held.term().wire_id();
  }
};

// What happens while somebody tries: before which of the locks it takes.
struct Order {
  int released, performed, answered;
};

std::string text(const Order& order) {
  return "released before lock " + std::to_string(order.released) + ", claims arrive before lock " +
         std::to_string(order.performed) + ", their answers before lock " +
         std::to_string(order.answered);
}

struct Verdict {
  bool locked;
  int places;
  std::size_t takes;  // of the trier
};

Verdict try_lock(Scene& scene, const Order& order) {
  scene.store->forget();
  std::vector<std::shared_ptr<HeldCall>> calls;
  const Gaps gaps([&](int place) {
    if (place == order.released) scene.holder.unlock();
    if (place == order.performed) {
      calls = scene.executor->pending_calls();
      for (const auto& call : calls) call->perform();
    }
    if (place == order.answered) {
      for (const auto& call : calls) call->complete();
    }
  });
  const bool locked = scene.trier.try_lock();
  return {locked, gaps.count(), scene.store->takes()};
}

void expect_it_is_held(Scene& scene) {
  EXPECT_TRUE(scene.trier.is_owner());
  EXPECT_EQ(scene.owner(), scene.trier.term().wire_id());
  scene.executor->let_calls_go();
  scene.executor->advance(1min);
  EXPECT_TRUE(scene.trier.is_in_ttl()) << "it is not renewed";
  scene.trier.unlock();
  scene.executor->advance(2s);
  EXPECT_EQ(scene.owner(), scene.next());
}

// Whoever said no has nothing: not now, not soon, never.
void expect_nothing_is_left(Scene& scene) {
  EXPECT_FALSE(scene.trier.is_owner()) << "it said no and owns it";
  scene.holder.unlock();  // if nothing else made it
  scene.executor->let_calls_go();
  scene.executor->advance(2s);
  EXPECT_EQ(scene.owner(), scene.next()) << "nobody wants it, and nobody else can have it";
  scene.of_another.clear();
  scene.executor->run();
  scene.store->forget();
  scene.executor->advance(1min);
  EXPECT_EQ(scene.store->renewals(), 0U) << "renewed for ever";
  EXPECT_TRUE(scene.trier.try_lock()) << "it cannot be tried again";
}

// What is still under way when the try is over: the store acts, and nobody hears of it.
void lose_what_is_under_way(Scene& scene) {
  for (const auto& call : scene.executor->pending_calls()) {
    call->perform();
    call->lose();
    call->complete();
  }
}

// How many rounds ended how.
struct Tally {
  int refused = 0, granted_at_once = 0, granted_after_all = 0;
};

enum class Late { kComes, kIsLost };  // an answer after the try has returned

// Every order, as long as there are places.
Tally try_every_order(bool another_waits, Late answer) {
  Tally tally;
  int places = 1;  // known so far
  for (int released = 0; released < places; ++released) {
    for (int performed = released; performed < places; ++performed) {
      for (int answered = performed; answered < places; ++answered) {
        const Order order{released, performed, answered};
        const ::testing::ScopedTrace trace(__FILE__, __LINE__, text(order));
        Scene scene(another_waits);
        const Verdict verdict = try_lock(scene, order);
        places = std::max(places, verdict.places);
        if (answer == Late::kIsLost) lose_what_is_under_way(scene);
        if (verdict.locked) {
          ++(verdict.takes == 1 ? tally.granted_at_once : tally.granted_after_all);
          expect_it_is_held(scene);
        } else {
          ++tally.refused;
          expect_nothing_is_left(scene);
        }
        if (::testing::Test::HasFailure()) return tally;
      }
    }
  }
  EXPECT_GT(places, 5) << "no locks pass by: is it linked with --wrap?";
  return tally;
}

TEST(TryLockTest, WheneverTheHolderLetsGoATryIsHeldOrLeavesNothingBehind) {
  for (const Late answer : {Late::kComes, Late::kIsLost}) {
    const Tally tally = try_every_order(false, answer);
    EXPECT_GT(tally.refused, 0);
    EXPECT_GT(tally.granted_at_once, 0);
    EXPECT_GT(tally.granted_after_all, 0) << "none was granted between its refusal and giving up";
  }
}

TEST(TryLockTest, TheSameWhereAnotherHasWaitedForLonger) {
  for (const Late answer : {Late::kComes, Late::kIsLost}) {
    const Tally tally = try_every_order(true, answer);
    EXPECT_GT(tally.refused, 0);
    EXPECT_GT(tally.granted_at_once, 0);
  }
}

}  // namespace
}  // namespace simba
