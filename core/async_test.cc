#include "simba/async.h"

#include <gtest/gtest.h>

#include <deque>
#include <future>

#include "simba/contender_id.h"
#include "simba/coroutine.h"
#include "simba/locker.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"

namespace simba {
namespace {

using namespace std::chrono_literals;

// Virtual time: nothing happens unless the test says so.
class AsyncTest : public ::testing::Test {
 protected:
  std::shared_ptr<testing::FakeExecutor> executor = std::make_shared<testing::FakeExecutor>();
  std::shared_ptr<Store> store = make_memory([this] {
    return StoreTime{std::chrono::duration_cast<milliseconds>(executor->now().time_since_epoch())};
  });
  Client client = make_client();
  std::deque<Acquired> results;

  Client make_client(HandleExecutor users = {}) {
    ClientOptions options;
    options.executor = executor;
    options.handle_executor = std::move(users);
    return Client(store, std::move(options));
  }
  PendingAcquire acquire_with(const Client& its_client, AcquireOptions options = {}) {
    return acquire_async(its_client, "job", std::move(options),
                         [this](Acquired acquired) { results.push_back(std::move(acquired)); });
  }
  PendingAcquire acquire_as(const char* id, AcquireOptions options = {}) {
    options.contender_id = id;
    return acquire_with(client, std::move(options));
  }
  std::string owner() { return std::string(label_of(client.observe("job").owner.id)); }
};

TEST_F(AsyncTest, HandsOverAFreeMutexAndNeverInsideTheCall) {
  acquire_as("first");
  EXPECT_TRUE(results.empty());
  executor->run();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].held.is_in_ttl());
  EXPECT_EQ(owner(), "first");
}

TEST_F(AsyncTest, TheCallbackRunsOnTheUsersExecutor) {
  std::deque<std::function<void()>> tasks;
  const Client own =
      make_client([&](std::function<void()> task) { tasks.push_back(std::move(task)); });
  acquire_with(own);
  executor->run();
  EXPECT_TRUE(results.empty());
  ASSERT_EQ(tasks.size(), 1U);
  tasks.front()();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].held.is_in_ttl());
}

TEST_F(AsyncTest, AUsersExecutorThatRefusesGetsTheCallbackNowhereTwice) {
  int asked = 0;
  const Client own = make_client([&](const std::function<void()>&) {
    ++asked;
    throw std::runtime_error("full");
  });
  acquire_with(own);
  executor->run();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(results.size(), 1U);
}

TEST_F(AsyncTest, AUsersExecutorThatDropsTheCallbackLeavesItToAThreadOfOurs) {
  const Client own = make_client([](const std::function<void()>&) {});
  acquire_with(own);
  executor->run();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].held.is_in_ttl());
}

TEST_F(AsyncTest, TheNextOneGetsItWhenTheFirstLetsGo) {
  acquire_as("first");
  executor->run();
  acquire_as("second");
  executor->advance(30s);
  ASSERT_EQ(results.size(), 1U);
  const Token before = results[0].held.token();
  results[0].held.release();
  executor->run();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_GT(results[1].held.token(), before);
}

TEST_F(AsyncTest, GivesUpWhenItsTimeIsUpAndLeavesNothingBehind) {
  acquire_as("first");
  executor->run();
  AcquireOptions options;
  options.timeout = 2000ms;
  acquire_as("second", options);
  executor->advance(1999ms);
  EXPECT_EQ(results.size(), 1U);
  executor->advance(1ms);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_FALSE(results[1].held);
  EXPECT_FALSE(results[1].error);
  results[0].held.release();
  executor->advance(1min);
  EXPECT_EQ(owner(), "");
  EXPECT_EQ(results.size(), 2U) << "exactly once";
}

TEST_F(AsyncTest, CancelIsAnsweredOnceWithNothingHeld) {
  acquire_as("first");
  executor->run();
  PendingAcquire second = acquire_as("second");
  executor->run();
  second.cancel();
  second.cancel();
  executor->advance(1min);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_FALSE(results[1].held);
}

TEST_F(AsyncTest, AStopTokenCancelsAlsoWhenItWasRequestedBefore) {
  acquire_as("first");
  executor->run();
  std::stop_source stop;
  AcquireOptions options;
  options.stop = stop.get_token();
  acquire_as("second", options);
  stop.request_stop();
  executor->run();
  EXPECT_EQ(results.size(), 2U);
  acquire_as("third", options);
  executor->run();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_FALSE(results[2].held);
}

TEST_F(AsyncTest, LosesItWhenItIsEvictedAndSaysSo) {
  acquire_as("first");
  executor->run();
  const std::stop_token lost = results[0].held.lost();
  const Observation seen = client.observe("job");
  client.evict("job", seen.owner.id, seen.owner.token);
  executor->advance(7s);
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(results[0].held.term().loss().reason, LossReason::kForced);
}

TEST_F(AsyncTest, TheMaximumHoldTimeEndsTheTerm) {
  AcquireOptions options;
  options.contend.emplace().max_hold = 3s;
  acquire_as("first", options);
  executor->run();
  const Term term = results[0].held.term();
  executor->advance(2999ms);
  EXPECT_TRUE(term.is_in_ttl());
  executor->advance(1ms);
  EXPECT_TRUE(term.lost().stop_requested());
  EXPECT_EQ(term.loss().reason, LossReason::kReleased);
  results[0].held.release();
  executor->run();
  EXPECT_EQ(owner(), "");
}

TEST_F(AsyncTest, ABadNameIsAnErrorAtTheCall) {
  EXPECT_THROW(acquire_async(client, "", {}, [](const Acquired&) {}), Error);
}

TEST_F(AsyncTest, AnEmptyCallbackIsAnErrorAtTheCall) {
  try {
    acquire_async(client, "job", {}, {});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisuse);
  }
  executor->run();
  EXPECT_EQ(owner(), "");
}

// A coroutine that starts at once and whose end nobody waits for.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Detached append_when_held(const Client& client, std::string name, std::vector<std::string>& log) {
  {
    const HeldMutex held = co_await acquire(client, "job");
    log.push_back(name + (held.is_in_ttl() ? " holds" : " does not hold"));
  }
  log.push_back(name + " let go");
}

TEST_F(AsyncTest, CoroutinesHoldOneAfterTheOther) {
  std::vector<std::string> log;
  append_when_held(client, "a", log);
  append_when_held(client, "b", log);
  executor->advance(5s);
  EXPECT_EQ(log, (std::vector<std::string>{"a holds", "a let go", "b holds", "b let go"}));
}

TEST_F(AsyncTest, ACoroutineGetsTheErrorThatWaitingCannotHelp) {
  bool thrown = false;
  [](const Client& use, bool& caught) -> Detached {
    try {
      const std::string too_long(300, 'x');
      co_await acquire(use, too_long);
    } catch (const Error&) {
      caught = true;
    }
  }(client, thrown);
  executor->run();
  EXPECT_TRUE(thrown);
}

TEST(AsyncDeathTest, ACallbackThatThrowsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto throw_in_callback = [](HandleExecutor users) {
    ClientOptions options;
    options.handle_executor = std::move(users);
    const Client client{make_memory(), std::move(options)};
    acquire_async(client, "job", {}, [](const Acquired&) { throw std::runtime_error("mine"); });
    std::promise<void>().get_future().wait_for(60s);
  };
  EXPECT_DEATH(throw_in_callback({}), "mine");
  EXPECT_DEATH(throw_in_callback([](const std::function<void()>& task) { task(); }), "mine");
}

TEST(AsyncThreads, WorksOnRealThreadsToo) {
  const Client client{make_memory()};
  std::promise<Token> token;
  acquire_async(client, "job", {},
                [&](const Acquired& acquired) { token.set_value(acquired.held.token()); });
  EXPECT_GT(token.get_future().get(), 0U);
}

// The process stands still between the grant and the look at it.
class StallingExecutor : public testing::FakeExecutor {
 public:
  void call(Lane lane, std::shared_ptr<StoreCall> call) override {
    FakeExecutor::call(lane, std::move(call));
    jump(std::exchange(stall, 0ns));
  }
  nanoseconds stall{0};
};

class LateGrantTest : public ::testing::TestWithParam<nanoseconds> {
 protected:
  void SetUp() override {
    executor->hold_calls();
    AcquireOptions options;
    options.contender_id = "late";
    pending = acquire_async(client, "job", options,
                            [this](Acquired acquired) { results.push_back(std::move(acquired)); });
    other = acquire_async(client, "other", {}, [](const Acquired&) {});
    executor->run();
    executor->stall = GetParam();
    executor->pending_calls().front()->complete();
  }
  static ClientOptions on(std::shared_ptr<Executor> executor) {
    ClientOptions options;
    options.executor = std::move(executor);
    return options;
  }

  std::shared_ptr<StallingExecutor> executor = std::make_shared<StallingExecutor>();
  Client client{make_memory(executor->store_clock()), on(executor)};
  std::deque<Acquired> results;
  PendingAcquire pending, other;
};

TEST_P(LateGrantTest, IsGivenBackAndTheMutexAcquiredAgain) {
  executor->let_calls_go();
  executor->advance(1min);
  ASSERT_EQ(results.size(), 1U);
  ASSERT_TRUE(results[0].held);
  EXPECT_TRUE(results[0].held.is_in_ttl());
  results.clear();
  executor->advance(1s);
  EXPECT_TRUE(client.observe("job").is_free()) << "somebody holds it for nobody";
}

TEST_P(LateGrantTest, WhoIsCancelledMeanwhileHearsItAndHoldsNothing) {
  pending.cancel();
  executor->let_calls_go();
  executor->advance(1min);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_FALSE(results[0].held);
  EXPECT_TRUE(client.observe("job").is_free()) << "somebody holds it for nobody";
}

// In its ttl no more, and its own no more.
INSTANTIATE_TEST_SUITE_P(Async, LateGrantTest, ::testing::Values(12s, 20s),
                         [](const auto& stall) { return std::to_string(stall.param / 1s) + "s"; });

// The holder's renewal is answered when the time of all who wait is up, before their alarm came.
TEST_F(AsyncTest, ThousandsWhoseTimeIsUpAtOnceLeaveOneAfterTheOther) {
  constexpr int kMany = 20'000;  // as deep as a stack if each took the next along
  acquire_as("holder");
  executor->run();
  AcquireOptions options;
  options.timeout = 7000ms;
  for (int i = 0; i < kMany; ++i) acquire_as("waiter", options);
  executor->advance(6s);
  executor->hold_calls();
  executor->advance(900ms);
  ASSERT_EQ(executor->pending_calls().size(), 1U) << "the renewal";
  executor->jump(500ms);
  executor->pending_calls().front()->complete();
  executor->let_calls_go();
  executor->run();
  ASSERT_EQ(results.size(), 1U + kMany);
  EXPECT_TRUE(results[0].held.is_in_ttl());
  EXPECT_FALSE(results[kMany].held);
}

// Owns the frame, and may destroy it while it waits.
struct Owned {
  struct promise_type {
    Owned get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> frame;
};

TEST_F(AsyncTest, ACoroutineThatIsDestroyedWhileItWaitsIsNotGoneOnWith) {
  for (const bool is_granted_just_then : {false, true}) {
    acquire_as("first");
    executor->run();
    bool went_on = false;
    const Owned waiting = [](const Client& use, bool& on) -> Owned {
      const HeldMutex held = co_await acquire(use, "job");
      on = true;
    }(client, went_on);
    executor->run();
    if (is_granted_just_then) {
      executor->hold_callbacks();
      results[0].held.release();
      executor->run();
      ASSERT_GT(executor->pending_callbacks(), 0U);
    }
    waiting.frame.destroy();
    results.clear();
    executor->let_callbacks_go();
    executor->advance(1s);
    EXPECT_FALSE(went_on);
    EXPECT_TRUE(client.observe("job").is_free()) << "somebody holds it for nobody";
  }
}

TEST_F(AsyncTest, ATimeoutBeyondAllTimeIsNone) {
  acquire_as("first");
  executor->run();
  AcquireOptions options;
  options.timeout = milliseconds::max();
  acquire_as("second", options);
  executor->advance(1min);
  EXPECT_EQ(results.size(), 1U) << "it gave up";
  results.clear();
  executor->advance(1min);
  EXPECT_EQ(results.size(), 1U);
}

}  // namespace
}  // namespace simba
