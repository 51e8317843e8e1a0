#include "simba/contend_service.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "simba/memory.h"
#include "testing/faulty_store.h"

namespace simba {
namespace {

using namespace std::chrono_literals;
using testing::FaultyStore;
using Words = std::vector<std::string>;

bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return done();
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Outlasts every case, and so does the patience of stop().
ContendOptions long_lease() {
  ContendOptions options;
  options.ttl = 60s;
  options.transition = 30s;
  options.jitter = {0ms, 20ms};
  options.grace = 20s;
  return options;
}

// Its owner hears soon that it was evicted, and never loses it otherwise.
ContendOptions soon_renewed() {
  ContendOptions options = long_lease();
  options.renew_at = 0.005;
  return options;
}

// Runs out in three seconds, and a machine that stands still for two does not cost it.
ContendOptions short_lease() {
  ContendOptions options;
  options.ttl = 2s;
  options.transition = 1s;
  options.jitter = {0ms, 20ms};
  options.renew_at = 0.1;
  return options;
}

ClientOptions with(const ContendOptions& contend) {
  ClientOptions options;
  options.contend = contend;
  return options;
}

class ContendServiceTest : public ::testing::Test {
 protected:
  const std::shared_ptr<Store> rows = make_memory();  // without faults
  const std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(rows);
  Client client{store, with(long_lease())};
  // Shared with the callbacks: abandoned work may outlive the test.
  struct Told {
    std::mutex guard;
    Words words;  // guarded by guard
    std::function<void(const MutexState&)> on_acquired, on_released;

    void say(const char* word) {
      const std::lock_guard lock(guard);
      words.emplace_back(word);
    }
  };
  const std::shared_ptr<Told> told = std::make_shared<Told>();
  std::function<void(const MutexState&)>&on_acquired = told->on_acquired,
                           &on_released = told->on_released;
  const std::shared_ptr<MutexContender> contender =
      make_contender("m",
                     {[told = told](const MutexState& state) {
                        told->say("acquired");
                        if (told->on_acquired) told->on_acquired(state);
                      },
                      [told = told](const MutexState& state) {
                        told->say("released");
                        if (told->on_released) told->on_released(state);
                      }},
                     "c");

  Words heard() {
    const std::lock_guard lock(told->guard);
    return told->words;
  }
  bool waits_for(const Words& words) {
    return eventually([&] { return heard() == words; });
  }
  Observation row() {
    const std::string_view name = "m";
    return std::get<Observation>(rows->observe({&name, 1}, BootClock::now() + 60s).at(0));
  }
  void take(const std::string& id) {
    const Claim claim{"m", id, 0, 0, 60s, 30s};
    rows->contend({&claim, 1}, BootClock::now() + 60s);
  }
  void release(const std::string& id) {
    const Claim claim{"m", id, 0, 0, 60s, 30s};
    rows->release({&claim, 1}, BootClock::now() + 60s);
  }
};

std::string misuse_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisuse) << error.what();
    return error.what();
  }
}

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

TEST_F(ContendServiceTest, WorkThatIgnoresTheStopIsAbandoned) {
  std::atomic<bool> go_on{false};
  on_acquired = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  MutexContendService service(client, contender, short_lease());
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  EXPECT_FALSE(service.stop(20ms));
  EXPECT_EQ(service.status(), Status::kInitial);
  EXPECT_EQ(term.loss().reason, LossReason::kAbandoned);
  EXPECT_TRUE(term.lost().stop_requested());
  EXPECT_EQ(store->releases(), 0u);
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
  EXPECT_FALSE(term.is_owner());
  go_on = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
}

// The verdict is about this stop(), not about one before it.
TEST_F(ContendServiceTest, AStopAfterAnAbandonedTermIsTrueAgain) {
  std::atomic<bool> go_on{false};
  on_acquired = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  MutexContendService service(client, contender);
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_FALSE(service.stop(20ms));
  go_on = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  service.start();  // waits: the abandoned lease still runs
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kRunning; }));
  EXPECT_TRUE(service.stop(20s)) << "nothing was abandoned this time";
}

// Also when the term was lost before, and there is nothing to release.
TEST_F(ContendServiceTest, AStopThatWorkOutlivesIsFalseWhateverEndedTheTerm) {
  std::atomic<bool> go_on{false};
  on_acquired = [&](const MutexState&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
  };
  MutexContendService service(client, contender, soon_renewed());
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  client.evict("m", term.wire_id(), term.token());
  ASSERT_TRUE(eventually([&] { return term.lost().stop_requested(); }));
  EXPECT_FALSE(service.stop(20ms)) << "its work still runs";
  go_on = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
}

TEST_F(ContendServiceTest, TheOldWorkOfAnAbandonedTermNeverOverlapsTheNew) {
  std::atomic<bool> go_on{false};
  std::atomic<int> inside{0}, worst{0};
  on_acquired = [&](const MutexState&) {
    worst = std::max(worst.load(), ++inside);
    while (!go_on) std::this_thread::sleep_for(1ms);
    --inside;
  };
  MutexContendService service(client, contender, short_lease());
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  EXPECT_FALSE(service.stop(20ms));
  service.start();
  EXPECT_TRUE(eventually([&] { return service.is_owner(); }));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(worst, 1);
  go_on = true;
  ASSERT_TRUE(eventually([&] { return heard().size() >= 3; }));
  EXPECT_EQ(heard()[1], "released");
  EXPECT_EQ(heard()[2], "acquired");
  service.stop();
  EXPECT_EQ(worst, 1);
}

TEST_F(ContendServiceTest, StopInACallbackReturnsAtOnce) {
  MutexContendService service(client, contender);
  on_acquired = [&](const MutexState&) {
    service.stop();
    EXPECT_EQ(heard(), Words{"acquired"});
  };
  service.start();
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kInitial; }));
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, StopInOnReleasedOfALostTermIsLegal) {
  MutexContendService service(client, contender, soon_renewed());
  on_released = [&](const MutexState&) { service.stop(); };
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow);
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return service.status() == Status::kInitial; }));
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, AServiceMayBeDestroyedInOnAcquired) {
  auto service = std::make_unique<MutexContendService>(client, contender);
  on_acquired = [&](const MutexState&) { service.reset(); };
  service->start();
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
}

TEST_F(ContendServiceTest, AServiceMayBeDestroyedInOnReleased) {
  auto service = std::make_unique<MutexContendService>(client, contender, soon_renewed());
  std::atomic<bool> gone{false};
  on_released = [&](const MutexState&) {
    service.reset();
    gone = true;
  };
  service->start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service->term();
  client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow);
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(heard(), (Words{"acquired", "released"})) << "it went on contending";
}

TEST_F(ContendServiceTest, TheLastHandleMayGoInACallback) {
  auto own = std::make_unique<Client>(store, with(long_lease()));
  auto service = std::make_unique<MutexContendService>(*own, contender);
  own.reset();
  on_acquired = [&](const MutexState&) { service.reset(); };
  service->start();
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_TRUE(eventually([&] { return row().is_free(); }));
}

// stop() in a callback returns at once; whoever destroys the service afterwards, elsewhere, must
// not find the callback still using what it destroys next.
TEST_F(ContendServiceTest, TheDestructorWaitsForAStopThatIsUnderWay) {
  std::atomic<bool> stopping{false}, over{false};
  auto service = std::make_unique<MutexContendService>(client, contender);
  on_acquired = [&](const MutexState&) {
    service->stop();
    stopping = true;
    std::this_thread::sleep_for(200ms);
  };
  on_released = [&](const MutexState&) { over = true; };
  service->start();
  ASSERT_TRUE(eventually([&] { return stopping.load(); }));
  service.reset();
  EXPECT_TRUE(over) << "a callback outlived the service";
  EXPECT_TRUE(eventually([&] { return over.load(); }));
}

TEST_F(ContendServiceTest, NoNoticeComesAfterStopHasReturned) {
  struct Slow : MutexContender {
    using MutexContender::MutexContender;
    void notify_owner(const MutexState&) override {
      ++begun;
      std::this_thread::sleep_for(200ms);
      ++ended;
    }
    std::atomic<int> begun{0}, ended{0};
  };
  take("x");
  const auto slow = std::make_shared<Slow>("m");
  MutexContendService service(client, slow);
  service.start();
  ASSERT_TRUE(eventually([&] { return slow->begun == 1; }));
  service.stop();
  EXPECT_EQ(slow->ended, slow->begun) << "stopped, and still in a callback";
  const int begun = slow->begun;
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(slow->begun, begun) << "told after stop()";
}

TEST_F(ContendServiceTest, CloseIsQuietInEveryState) {
  MutexContendService service(client, contender);
  service.close();
  service.start();
  service.close();
  service.close();
  EXPECT_EQ(service.status(), Status::kInitial);
  service.start();
  EXPECT_TRUE(eventually([&] { return service.is_owner(); }));
  service.close();
  EXPECT_TRUE(row().is_free());
}

TEST_F(ContendServiceTest, StopFromManyThreadsHappensOnce) {
  MutexContendService service(client, contender);
  for (int round = 0; round < 20; ++round) {
    service.start();
    std::atomic<int> stopped{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          service.stop();
          ++stopped;
        } catch (const Error& error) {
          EXPECT_EQ(error.errc(), Errc::kMisuse);
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(stopped, 1);
    EXPECT_EQ(refused, 3);
    EXPECT_EQ(service.status(), Status::kInitial);
  }
}

TEST_F(ContendServiceTest, AHungStoreDoesNotHoldUpTheEndOfATerm) {
  struct Hanging : FaultyStore {
    using FaultyStore::FaultyStore;
    std::atomic<bool> hang{false};
    Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
      while (hang) std::this_thread::sleep_for(1ms);
      return FaultyStore::contend(claims, deadline);
    }
  };
  const auto hanging = std::make_shared<Hanging>(rows);
  const Client own(hanging, with(short_lease()));
  MutexContendService service(own, contender);
  service.start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const Term term = service.term();
  hanging->hang = true;
  EXPECT_TRUE(waits_for({"acquired", "released"}));
  EXPECT_FALSE(term.is_owner());
  EXPECT_EQ(term.loss().reason, LossReason::kUnreachable);
  EXPECT_TRUE(term.lost().stop_requested());
  hanging->hang = false;
  service.stop();
}

TEST_F(ContendServiceTest, AForkedChildOwnsNothingAndItsDestructorsDoNotHang) {
  auto own = std::make_unique<Client>(store, with(long_lease()));
  auto service = std::make_unique<MutexContendService>(*own, contender);
  on_acquired = [](const MutexState& state) {
    while (!state.term.lost().stop_requested()) std::this_thread::sleep_for(1ms);
  };
  service->start();
  EXPECT_TRUE(waits_for({"acquired"}));
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    if (service->is_owner() || service->is_in_ttl() || service->term()) _exit(1);
    service->close();
    service.reset();
    own.reset();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "it hung, or crashed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(service->is_owner());
  service->stop();
  EXPECT_EQ(heard(), (Words{"acquired", "released"}));
}

// Supervisors start it again as soon as it may: the stop that ended the last life returns.
TEST_F(ContendServiceTest, AStopReturnsAlsoWhenSomebodyStartsTheNextLifeAtOnce) {
  MutexContendService service(client, contender);
  std::atomic<bool> is_done{false};
  std::atomic<int> starts{0};
  const auto supervise = [&] {
    while (!is_done) {
      if (service.status() != Status::kInitial) continue;
      try {
        service.start();
        ++starts;
      } catch (const Error&) {
        continue;  // another one was faster
      }
    }
  };
  // More of them than processors, so that they are often before the one who waits.
  std::vector<std::thread> supervisors;
  for (int i = 0; i < 4; ++i) supervisors.emplace_back(supervise);
  for (int round = 1; round <= 50; ++round) {
    ASSERT_TRUE(eventually([&] { return starts >= round; }));
    service.stop();
  }
  is_done = true;
  for (std::thread& supervisor : supervisors) supervisor.join();
}

}  // namespace
}  // namespace simba
