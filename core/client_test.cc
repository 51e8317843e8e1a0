#include "simba/client.h"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/api_fixture.h"
#include "simba/contend_service.h"
#include "simba/locker.h"

namespace simba {
namespace {

class ClientTest : public ApiTest {};

TEST_F(ClientTest, ObservesListsAndEvicts) {
  Client client(store);
  EXPECT_TRUE(client.observe("m").is_free());
  SimbaLocker a(client, "a"), b(client, "b");
  a.lock();
  b.lock();
  EXPECT_EQ(client.observe("a").owner.id, a.term().wire_id());
  const auto listed = client.list();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].mutex, "a");
  EXPECT_EQ(listed[1].observation.owner.token, b.token());
  EXPECT_EQ(client.list("b").size(), 1u);
  EXPECT_EQ(client.list("", 1).size(), 1u);
  ASSERT_EQ(client.list_after("a").size(), 1u);
  EXPECT_EQ(client.list_after("a")[0].mutex, "b");
  EXPECT_TRUE(client.list_after("b").empty());
  EXPECT_EQ(client.evict("a", a.term().wire_id(), a.token() + 1).owner.id, a.term().wire_id());
  const Observation evicted = client.evict("a", a.term().wire_id(), a.token());
  EXPECT_EQ(evicted.owner.id, "");
  EXPECT_FALSE(evicted.is_free());
  EXPECT_TRUE(client.evict("b", b.term().wire_id(), b.token(), Eviction::kFreeNow).is_free());
}

TEST_F(ClientTest, TroubleShowsInTheCallsAndNotInTheConstructor) {
  store->go_down(Error(Errc::kDenied, "no"));
  Client client(store);
  try {
    client.observe("m");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kDenied);
  }
  store->heal();
  EXPECT_TRUE(client.observe("m").is_free());
  store->spoil("m", Error(Errc::kCorrupt, "this one"));
  EXPECT_THROW(client.observe("m"), Error);
  store->unspoil("m");
  store->block("m");
  EXPECT_THROW(client.observe("m"), Error);
}

TEST_F(ClientTest, NamesAreCheckedBeforeTheStoreIsAsked) {
  Client client(store);
  EXPECT_THROW(client.observe(""), Error);
  EXPECT_THROW(client.observe(std::string(300, 'x')), Error);
  EXPECT_THROW(client.evict("a\nb", "x", 1), Error);
  EXPECT_EQ(store->calls(), 0u);
}

TEST_F(ClientTest, ANullStoreDiesInTheConstructor) {
  try {
    const Client client(nullptr);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisuse);
  }
}

TEST_F(ClientTest, NobodyToTellDiesInTheConstructor) {
  const Client client(store);
  EXPECT_NE(misuse_of([&] { MutexContendService(client, nullptr); }), "none");
  EXPECT_NE(misuse_of([&] { MutexRetrievalService(client, nullptr, long_lease()); }), "none");
}

TEST_F(ClientTest, BadDefaultsDieInTheConstructor) {
  ClientOptions options;
  options.contend.ttl = 0ms;
  EXPECT_THROW(Client(store, options), Error);
}

TEST_F(ClientTest, CopiesSpeakOfTheSameEngine) {
  Client first(store);
  Client second = first;
  EXPECT_EQ(&first.store(), &second.store());
  EXPECT_EQ(first.session(), second.session());
  Client third(std::move(first));
  EXPECT_EQ(third.session(), second.session());
  second = third;
  EXPECT_TRUE(second.observe("m").is_free());
}

TEST_F(ClientTest, DefaultsOfTheClientAreThoseOfItsContenders) {
  ClientOptions options;
  options.contend.ttl = 33s;
  const Client client(store, options);
  EXPECT_EQ(client.options().contend.ttl, 33s);
  const MutexContendService service(client, make_contender("m", {}));
  EXPECT_EQ(service.options().ttl, 33s);
  SimbaLocker locker(client, "m");
  locker.lock();
  EXPECT_LE(row().owner.ttl_at.value() - row().now, 33s);
  EXPECT_GT(row().owner.ttl_at.value() - row().now, 20s) << "10 s, had it not been said";
}

// Shared by a test and the hooks of its client.
struct Heard {
  std::mutex guard;
  std::map<Event::Kind, int> counts;  // guarded by guard
  std::string mutex;                  // guarded by guard
  std::atomic<bool> is_over{false};
  std::atomic<int> after_the_end{0};

  int count(Event::Kind kind) {
    const std::lock_guard lock(guard);
    return counts[kind];
  }
  EventHook hook(std::shared_ptr<Heard> self) {
    return [self = std::move(self)](const Event& event) {
      if (self->is_over) ++self->after_the_end;
      const std::lock_guard lock(self->guard);
      ++self->counts[event.kind];
      if (event.kind == Event::Kind::kAcquired) self->mutex = event.mutex;
      if (event.kind == Event::Kind::kCalled) {
        EXPECT_EQ(event.claims, 1u);
      }
      if (event.kind == Event::Kind::kRenewalFailed) {
        EXPECT_NE(event.error, nullptr);
      }
    };
  }
};

TEST_F(ClientTest, EventsTellWhatHappened) {
  const auto heard = std::make_shared<Heard>();
  ClientOptions options;
  options.contend = soon_renewed();
  options.on_event = heard->hook(heard);
  const Client client(store, options);
  MutexContendService service(client, make_contender("m", {}));
  service.start();
  EXPECT_TRUE(eventually([&] { return heard->count(Event::Kind::kRenewed) > 0; }));
  EXPECT_EQ(heard->count(Event::Kind::kAcquired), 1);
  EXPECT_EQ(heard->mutex, "m");
  store->fail_before(Error(Errc::kUnreachable, "once"));
  EXPECT_TRUE(eventually([&] { return heard->count(Event::Kind::kRenewalFailed) > 0; }));
  service.stop();
  EXPECT_TRUE(eventually([&] {
    return heard->count(Event::Kind::kReleased) + heard->count(Event::Kind::kRevoked) > 0;
  }));
  EXPECT_GT(heard->count(Event::Kind::kCalled), 2);
}

TEST_F(ClientTest, AnOperatorsCallIsAnEventToo) {
  std::vector<std::pair<std::size_t, std::optional<Errc>>> calls;
  ClientOptions options;
  options.on_event = [&](const Event& event) {
    if (event.kind != Event::Kind::kCalled) return;
    EXPECT_TRUE(event.mutex.empty());
    calls.emplace_back(event.claims,
                       event.error ? std::optional(event.error->errc()) : std::nullopt);
  };
  Client client(store, options);
  client.observe("m");
  client.list();
  client.evict("m", "nobody", 1);
  store->go_down(Error(Errc::kDenied, "no"));
  EXPECT_THROW(client.observe("m"), Error);
  EXPECT_EQ(calls, (decltype(calls){{0, {}}, {0, {}}, {0, {}}, {0, Errc::kDenied}}));
}

TEST_F(ClientTest, AnOperatorsCallThatMeetsAReplacedStoreEndsAllTerms) {
  Client client(store, with(long_lease()));
  const std::function<void()> calls[] = {
      [&] { client.observe("another"); },
      [&] { client.list(); },
      [&] { client.evict("another", "nobody", 1); },
  };
  for (const auto& call : calls) {
    SimbaLocker first(client, "m"), second(client, "n");
    first.lock();
    second.lock();
    store->go_down(Error(Errc::kReplaced, "another file"));
    try {
      call();
      ADD_FAILURE() << "nothing was said";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kReplaced);
    }
    store->heal();
    for (const SimbaLocker* each : {&first, &second}) {
      EXPECT_FALSE(each->is_owner());
      EXPECT_EQ(each->term().loss().reason, LossReason::kReplaced);
    }
  }
}

TEST_F(ClientTest, AnOperatorsCallHasACodeInsteadOfAnException) {
  Client client(store);
  SimbaLocker locker(client, "m");
  locker.lock();
  const Term term = locker.term();
  std::error_code error = Errc::kMisuse;
  EXPECT_EQ(client.observe("m", 1s, error).owner.token, term.token());
  EXPECT_FALSE(error);
  EXPECT_EQ(client.list("", 10, 1s, error).size(), 1u);
  EXPECT_TRUE(client.list_after("m", "", 10, 1s, error).empty());
  EXPECT_FALSE(error);
  store->go_down(Error(Errc::kDenied, "no"));
  EXPECT_TRUE(client.observe("m", 1s, error).owner.id.empty());
  EXPECT_EQ(error, Errc::kDenied);
  EXPECT_TRUE(client.list("", 10, 1s, error).empty());
  EXPECT_EQ(error, Errc::kDenied);
  client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow, 1s, error);
  EXPECT_EQ(error, Errc::kDenied);
  store->heal();
  EXPECT_TRUE(
      client.evict("m", term.wire_id(), term.token(), Eviction::kFreeNow, 1s, error).is_free());
  EXPECT_FALSE(error);
  client.observe(std::string(10'000, 'x'), 1s, error);
  EXPECT_EQ(error, Errc::kMisconfigured);
}

// Whoever has destroyed the client and all its handles may destroy what its hooks use.
TEST_F(ClientTest, NoHookIsCalledAfterTheLastHandleIsGone) {
  for (int round = 0; round < 500; ++round) {
    const auto heard = std::make_shared<Heard>();
    {
      ClientOptions options;
      options.on_event = heard->hook(heard);
      const Client client(store, options);
      MutexContendService service(client, make_contender("m", {}));
      service.start();
      if (round % 2 == 0) {
        EXPECT_TRUE(eventually([&] { return service.is_owner(); }));
      }
      service.stop();
    }
    heard->is_over = true;
    std::this_thread::sleep_for(1ms);
    ASSERT_EQ(heard->after_the_end, 0) << "round " << round;
  }
}

TEST_F(ClientTest, TheLastHandleGivesBackWhatIsStillUnderWay) {
  {
    const Client client(store);
    SimbaLocker locker(client, "m");
    store->fail_after(Error(Errc::kTimeout, "lost answer"));
    EXPECT_FALSE(locker.try_lock());
  }
  EXPECT_TRUE(row().is_free()) << "an ambiguous take was left behind";
}

TEST_F(ClientTest, AClientWithoutWorkHasNoThreadsToEnd) {
  for (int i = 0; i < 200; ++i) Client{store};
}

TEST_F(ClientTest, ManyClientsComeAndGoWhileOthersWork) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round) {
        const Client client(store);
        SimbaLocker locker(client, "m" + std::to_string(i % 2));
        if (locker.try_lock_for(20ms)) locker.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return row("m0").is_free() && row("m1").is_free(); }));
  EXPECT_TRUE(eventually([&] { return store->watches() == 0; }));
}

}  // namespace
}  // namespace simba
