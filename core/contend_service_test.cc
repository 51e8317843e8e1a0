// What a service tells, and to whom.
#include "simba/contend_service.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/contend_service_fixture.h"

namespace simba {
namespace {

TEST_F(ContendServiceTest, TellsWhatItIs) {
  MutexContendService service(client, contender);
  EXPECT_EQ(service.mutex(), "m");
  EXPECT_EQ(service.contender_id(), "c");
  EXPECT_EQ(service.contender(), contender);
  EXPECT_EQ(service.retriever(), contender);
  EXPECT_EQ(service.options().ttl, 60s);
  EXPECT_EQ(service.status(), Status::kInitial);
  EXPECT_FALSE(service.running());
  EXPECT_FALSE(service.has_owner());
  EXPECT_FALSE(service.term());
}

TEST_F(ContendServiceTest, GoesThroughItsStates) {
  store->go_down();
  MutexContendService service(client, contender);
  service.start();
  EXPECT_EQ(service.status(), Status::kStarting);
  EXPECT_TRUE(service.running());
  EXPECT_NE(misuse_of([&] { service.start(); }).find("STARTING"), std::string::npos);
  store->heal();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_EQ(service.status(), Status::kRunning);
  std::atomic<bool> go_on{false};
  on_released = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  std::thread stopper([&] { service.stop(20s); });
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kStopping; }));
  EXPECT_FALSE(service.running());
  EXPECT_NE(misuse_of([&] { service.start(); }).find("STOPPING"), std::string::npos);
  EXPECT_NE(misuse_of([&] { service.stop(); }).find("STOPPING"), std::string::npos);
  go_on = true;
  stopper.join();
  EXPECT_EQ(service.status(), Status::kInitial);
  EXPECT_NE(misuse_of([&] { service.stop(); }).find("INITIAL"), std::string::npos);
}

TEST_F(ContendServiceTest, StopInStartingIsLegalAndTellsNothing) {
  store->go_down();
  MutexContendService service(client, contender);
  service.start();
  service.stop();
  EXPECT_EQ(service.status(), Status::kInitial);
  store->heal();
  EXPECT_EQ(heard(), Words{});
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, AnInitialDelayIsWaitedForAndCanBeStopped) {
  ContendOptions options = long_lease();
  options.initial_delay = 10min;
  MutexContendService service(client, contender, options);
  service.start();
  EXPECT_EQ(service.status(), Status::kStarting);
  EXPECT_EQ(store->calls(), 0u);
  service.stop();
  EXPECT_EQ(service.status(), Status::kInitial);
}

TEST_F(ContendServiceTest, TheStateTellsWhoOwns) {
  take("x");
  MutexContendService service(client, contender);
  service.start();
  EXPECT_TRUE(eventually([&] { return service.after_owner().id == "x"; }));
  EXPECT_TRUE(service.has_owner());
  EXPECT_FALSE(service.is_owner());
  release("x");
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_TRUE(service.mutex_state().is_acquired());
  EXPECT_EQ(service.after_owner().id, service.term().wire_id());
  service.stop();
  EXPECT_TRUE(service.mutex_state().is_released());
  EXPECT_FALSE(service.has_owner());
}

TEST_F(ContendServiceTest, ASubclassOverridesWhatItWants) {
  struct Own : MutexContender {
    using MutexContender::MutexContender;
    void on_acquired(const MutexState& state) override { token = state.term.token(); }
    std::atomic<Token> token{0};
  };
  const auto own = std::make_shared<Own>("m");
  EXPECT_NE(own->contender_id().find(':' + std::to_string(getpid()) + '@'), std::string::npos)
      << "HOST by default";
  MutexContendService service(client, own);
  service.start();
  EXPECT_TRUE(eventually([&] { return own->token != 0; }));
  EXPECT_EQ(own->token, service.term().token());
  service.stop();
}

TEST_F(ContendServiceTest, AContenderWithoutCallbacksIsWelcome) {
  MutexContendService service(client, make_contender("m", {}));
  service.start();
  EXPECT_TRUE(eventually([&] { return service.is_owner(); }));
  service.stop();
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, AFactoryKeepsItsClientAndOptions) {
  std::unique_ptr<MutexContendServiceFactory> factory;
  {
    const Client own(store, with(long_lease()));
    ContendOptions options = long_lease();
    options.ttl = 70s;
    factory = make_contend_service_factory(own, options);
  }
  const auto service = factory->create_mutex_contend_service(contender);
  factory.reset();
  service->start();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_EQ(service->options().ttl, 70s) << "not the client's";
  EXPECT_GT(row().owner.ttl_at.value() - row().now, 60s);
  service->stop();
}

TEST_F(ContendServiceTest, ExceptionsInCallbacksAreLoggedAndChangeNothing) {
  std::mutex guard;
  Words lines;  // guarded by guard
  ClientOptions options = with(long_lease());
  options.log = [&](LogLevel level, std::string_view line) {
    const std::lock_guard lock(guard);
    if (level == LogLevel::kError) lines.emplace_back(line);
  };
  const Client logging(store, options);
  on_acquired = [](const MutexState&) { throw std::runtime_error("on purpose"); };
  on_released = [](const MutexState&) { throw 1; };
  MutexContendService service(logging, contender);
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_TRUE(service.is_owner());
  service.stop();
  EXPECT_EQ(heard(), (Words{"acquired", "released"}));
  EXPECT_TRUE(row().is_free());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("on purpose"), std::string::npos);
  EXPECT_NE(lines[0].find("'m'"), std::string::npos);
}

// An operator reads who leads, since when, and why no longer.
TEST_F(ContendServiceTest, EachChangeIsLoggedWithIdTokenAndReason) {
  const auto lines = std::make_shared<Told>();
  ClientOptions options = with(soon_renewed());
  options.log = [lines](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::kInfo) << line;
    lines->say(std::string(line).c_str());
  };
  const auto logged = [&] {
    const std::lock_guard lock(lines->guard);
    return lines->words;
  };
  const auto began = [](const Term& term) {
    return term.wire_id() + " acquired 'm', token " + std::to_string(term.token());
  };
  const auto ended = [](const Term& term) { return term.wire_id() + " no longer owns 'm': "; };
  const Client logging(store, options);
  MutexContendService service(logging, contender);
  service.start();
  ASSERT_TRUE(waits_for({"acquired"}));
  const Term first = service.term();
  EXPECT_EQ(logged(), Words{began(first)}) << "before its callback";
  client.evict("m", first.wire_id(), first.token(), Eviction::kFreeNow);
  ASSERT_TRUE(waits_for({"acquired", "released", "acquired"}));
  const Term second = service.term();
  EXPECT_EQ(logged(), (Words{began(first), ended(first) + "evicted", began(second)}));
  service.stop();
  EXPECT_EQ(logged().back(), ended(second) + "released");
  EXPECT_EQ(logged().size(), 4u);
}

TEST_F(ContendServiceTest, CallbacksRunOnTheUsersExecutor) {
  std::mutex queue_guard;
  std::vector<std::function<void()>> queue;
  ClientOptions options = with(long_lease());
  options.handle_executor = [&](std::function<void()> task) {
    const std::lock_guard lock(queue_guard);
    queue.push_back(std::move(task));
  };
  const auto run_all = [&] {
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(queue_guard);
      tasks.swap(queue);
    }
    for (auto& task : tasks) task();
  };
  const Client own(store, options);
  std::thread::id ran_on;
  on_acquired = [&](const MutexState&) { ran_on = std::this_thread::get_id(); };
  MutexContendService service(own, contender);
  service.start();
  ASSERT_TRUE(eventually([&] { return service.is_owner(); }));
  EXPECT_EQ(heard(), Words{});
  ASSERT_TRUE(eventually([&] {
    run_all();
    return heard() == Words{"acquired"};
  }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  std::atomic<bool> done{false};
  std::thread runner([&] {
    while (!done) {
      run_all();
      std::this_thread::sleep_for(1ms);
    }
  });
  service.stop();
  done = true;
  runner.join();
  EXPECT_EQ(heard(), (Words{"acquired", "released"}));
}

}  // namespace
}  // namespace simba
