#include <atomic>
#include <thread>

#include "testing/contract_case.h"

// Hints: they may be missing, but where they are promised they come, and they end.
namespace simba::testing {

void link_watch_cases() {}

namespace {

class WatchContract : public ContractTest {
 protected:
  const std::string a = wire_id("a"), b = wire_id("b");

  // A waiter's watch on its own connection; null where the store cannot push.
  std::unique_ptr<Watch> watch_as_waiter(Store& on, std::string_view mutex,
                                         std::function<void()> wake) {
    auto watch =
        on.watch(mutex, queues() ? std::string_view(b) : std::string_view{}, std::move(wake));
    if (queues()) take(on, mutex, b);
    return watch;
  }
};

SIMBA_CASE(WatchContract, AReleaseElsewhereWakesTheWaiter) {
  const std::string m = name();
  take(*store, m, a);
  const auto other = connect();
  std::atomic<int> wakes{0};
  const auto watch = watch_as_waiter(*other, m, [&] { ++wakes; });
  if (!watch) GTEST_SKIP() << "this store cannot push";
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  wakes = 0;
  release(*store, m, a);
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "no hint";
}

SIMBA_CASE(WatchContract, AnEvictionElsewhereWakesTheWaiter) {
  const std::string m = name();
  const Token token = take(*store, m, a).owner.token;
  const auto other = connect();
  std::atomic<int> wakes{0};
  const auto watch = watch_as_waiter(*other, m, [&] { ++wakes; });
  if (!watch) GTEST_SKIP() << "this store cannot push";
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  wakes = 0;
  store->evict(m, a, token, Eviction::kFreeNow, soon());
  EXPECT_TRUE(eventually([&] { return wakes > 0; })) << "no hint";
}

SIMBA_CASE(WatchContract, EveryReleaseWakesAgain) {
  const std::string m = name();
  const auto other = connect();
  std::atomic<int> wakes{0};
  const auto watch = other->watch(m, {}, [&] { ++wakes; });
  if (!watch || queues())
    GTEST_SKIP() << "this store cannot push, or wakes who stands in its queue";
  ASSERT_TRUE(eventually([&] { return watch->is_live(); }));
  for (int round = 0; round < 5; ++round) {
    const std::string id = wire_id();
    ASSERT_TRUE(owns(take(*store, m, id), id));
    wakes = 0;
    release(*store, m, id);
    ASSERT_TRUE(eventually([&] { return wakes > 0; })) << "round " << round;
  }
}

SIMBA_CASE(WatchContract, AWatchThatHasEndedNeverWakes) {
  const std::string m = name();
  const auto other = connect();
  if (!other->watch(m, {}, [] {})) GTEST_SKIP() << "this store cannot push";
  std::atomic<bool> done{false};
  std::thread releaser([&] {
    recorder.guard([&] {
      while (!done) {
        const std::string id = wire_id();
        take(*store, m, id);
        release(*store, m, id);
      }
    });
  });
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_shared<std::atomic<bool>>(true);
    auto watch = other->watch(m, {}, [this, alive] {
      recorder.expect(*alive, "woken after the watch was gone");
      std::this_thread::yield();
      recorder.expect(*alive, "still in wake() when the watch was gone");
    });
    if (round % 4 != 0) std::this_thread::sleep_for(std::chrono::microseconds(50 * (round % 7)));
    watch.reset();
    *alive = false;
  }
  done = true;
  releaser.join();
}

}  // namespace
}  // namespace simba::testing
