#include "testing/sim_world.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "simba/async.h"
#include "simba/contend_service.h"
#include "simba/coroutine.h"
#include "testing/attack.h"

namespace simba::testing {
namespace {

using namespace std::chrono_literals;

// A process that contends for "report" as long as it lives.
struct Leader {
  explicit Leader(SimNode& node, std::function<void(const MutexState&)> on_acquired = {})
      : service(node.client(),
                make_contender("report", {.on_acquired = std::move(on_acquired), .on_released = {}},
                               node.name())) {
    service.start();
  }
  MutexContendService service;
};

// Who leads, by the name of its process.
class Leaders {
 public:
  explicit Leaders(SimWorld& world) {
    world.on_crash([this](const SimNode& node) { alive_.erase(node.name()); });
  }
  SimNode::Program program() {
    return [this](SimNode& node) {
      auto leader = std::make_shared<Leader>(node);
      alive_[node.name()] = leader.get();
      return leader;
    };
  }
  std::vector<std::string> owners() const {
    std::vector<std::string> names;
    for (const auto& [name, leader] : alive_) {
      if (leader->service.is_owner()) names.push_back(name);
    }
    return names;
  }

 private:
  std::map<std::string, const Leader*> alive_;
};

using Names = std::vector<std::string>;

TEST(SimWorldTest, WithoutAPlanOfFaultsOneProcessLeadsAllTheTime) {
  SimWorld world{1};
  Leaders leaders{world};
  world.add_node("a").run(leaders.program());
  world.run(1s);
  world.add_node("b").run(leaders.program());
  world.run(300s, [&] { ASSERT_EQ(leaders.owners(), Names{"a"}); });
  EXPECT_EQ(world.counts().crashes + world.counts().pauses + world.counts().cuts, 0U);
  EXPECT_EQ(world.now(), World::Time{300s});
}

TEST(SimWorldTest, TakesOverFromACrashedProcessWhichComesBack) {
  SimWorld world{2};
  Leaders leaders{world};
  SimNode& a = world.add_node("a");
  a.run(leaders.program());
  world.run(1s);
  world.add_node("b").run(leaders.program());
  world.run(2s);
  a.crash();
  EXPECT_FALSE(a.is_up());
  EXPECT_EQ(leaders.owners(), Names{});
  world.run(20s);
  EXPECT_EQ(leaders.owners(), Names{"b"});
  a.boot();
  world.run(100s, [&] { ASSERT_EQ(leaders.owners(), Names{"b"}); });
}

TEST(SimWorldTest, AStopBeginsTheEndWhichComesAsTimePasses) {
  SimWorld world{1};
  Leaders leaders{world};
  std::shared_ptr<Leader> first;
  world.add_node("a").run([&](SimNode& node) { return first = std::make_shared<Leader>(node); });
  world.run(1s);
  ASSERT_TRUE(first->service.is_owner());
  world.add_node("b").run(leaders.program());
  world.run(2s);
  EXPECT_FALSE(first->service.stop(1s)) << "nothing can be over yet";
  world.run(8s);
  EXPECT_EQ(leaders.owners(), Names{"b"}) << "the lease has to run out";
  EXPECT_EQ(first->service.status(), Status::kInitial);
}

TEST(SimWorldTest, TakesOverFromAProcessThatIsCutOff) {
  SimWorld world{3};
  Leaders leaders{world};
  SimNode& a = world.add_node("a");
  a.run(leaders.program());
  world.run(1s);
  world.add_node("b").run(leaders.program());
  world.run(2s);
  a.cut_off();
  world.run(40s, [&] { ASSERT_LE(leaders.owners().size(), 1U); });
  EXPECT_EQ(leaders.owners(), Names{"b"});
}

TEST(SimWorldTest, APausedProcessDoesWhatFellDueInOrderWhenItRunsAgain) {
  SimWorld world{4};
  SimNode& node = world.add_node("a");
  std::vector<int> done;
  node.run([&](SimNode& self) {
    self.post(2s, [&] { done.push_back(1); });
    self.post(3s, [&] { done.push_back(2); });
    return nullptr;
  });
  node.pause();
  world.run(10s);
  EXPECT_TRUE(done.empty());
  node.resume();
  world.run(10s);
  EXPECT_EQ(done, (std::vector{1, 2}));
  EXPECT_EQ(node.running_since(), World::Time{10s});
}

TEST(SimWorldTest, ACrashTakesWhatTheProcessHadPlannedButNotWhatIsUnderWay) {
  SimWorld world{5};
  SimNode& node = world.add_node("a");
  int boots = 0, planned = 0, arrived = 0;
  node.run([&](SimNode& self) {
    ++boots;
    self.post(2s, [&] { ++planned; });
    world.world().after(2s, [&] { ++arrived; });
    return nullptr;
  });
  world.run(1s);
  node.crash();
  node.boot();
  world.run(10s);
  EXPECT_EQ(boots, 2);
  EXPECT_EQ(planned, 1) << "the plan of the second life alone";
  EXPECT_EQ(arrived, 2);
}

TEST(SimWorldTest, ADeadProcessOwnsNothingWhoeverAsks) {
  SimWorld world{6};
  SimNode& node = world.add_node("a");
  Term term;
  node.run([&](SimNode& self) {
    return std::make_shared<Leader>(self, [&](const MutexState& state) { term = state.term; });
  });
  world.run(1s);
  ASSERT_TRUE(term.is_in_ttl());
  node.crash();
  EXPECT_FALSE(term.is_in_ttl());
  EXPECT_FALSE(term.is_owner());
}

TEST(SimWorldTest, NoDestructorRunsInAProcessThatIsKilled) {
  bool destroyed = false;
  {
    SimWorld world{7};
    SimNode& node = world.add_node("a");
    node.run([&](SimNode&) {
      return std::shared_ptr<void>(&destroyed, [](void* it) { *static_cast<bool*>(it) = true; });
    });
    node.crash();
    node.boot();
  }
  EXPECT_FALSE(destroyed);
}

TEST(SimWorldTest, AProcessMayCrashInItsOwnCallbackAndWhileItBoots) {
  SimWorld world{8};
  int acquired = 0;
  SimNode& node = world.add_node("a");
  node.run([&](SimNode& self) {
    return std::make_shared<Leader>(self, [&](const MutexState&) {
      ++acquired;
      self.crash();
    });
  });
  world.run(1s);
  EXPECT_EQ(acquired, 1);
  EXPECT_FALSE(node.is_up());
  node.run([](SimNode& self) {
    auto leader = std::make_shared<Leader>(self);
    self.crash();
    return leader;
  });
  world.run(60s);
  EXPECT_FALSE(node.is_up());
}

TEST(SimWorldTest, ACallbackMayLastUntilItHearsOfItsLoss) {
  SimWorld world{8};
  SimNode& a = world.add_node("a");
  std::optional<bool> returned;
  a.run([&](SimNode&) {
    return std::make_shared<Leader>(a, [&](const MutexState& state) {
      returned = a.last_until([&] { return state.term.lost().stop_requested(); });
    });
  });
  world.world().at(20s, [&] {
    EXPECT_FALSE(returned);
    a.cut_off();
  });
  world.run(60s);
  EXPECT_EQ(returned, true);
}

TEST(SimWorldTest, AClientMayEndBeforeItsProcess) {
  SimWorld world{9};
  SimNode& node = world.add_node("a");
  int called = 0;
  node.run([&](SimNode& self) {
    auto client = std::make_shared<std::optional<Client>>(self.client());
    acquire_async(**client, "report", {}, [&](Acquired) { ++called; });
    self.post(0s, [client] { client->reset(); });
    return nullptr;
  });
  world.run(60s);
  EXPECT_LE(called, 1);
}

// Whoever has the token may wait for it, also when the client is gone.
TEST(SimWorldTest, ATermIsToldOfItsLossBeforeItsClientIsGone) {
  SimWorld world{9};
  SimNode& node = world.add_node("a");
  std::stop_token lost;
  std::optional<bool> told;
  node.run([&](SimNode& self) {
    auto client = std::make_shared<std::optional<Client>>(self.client());
    acquire_async(**client, "report", {}, [&, client](Acquired got) {
      lost = got.held.lost();
      self.post(0s, [&, client, held = std::make_shared<HeldMutex>(std::move(got.held))] {
        *held = HeldMutex();
        EXPECT_FALSE(lost.stop_requested()) << "nothing is left for the end of the client";
        client->reset();
        told = lost.stop_requested();
      });
    });
    return nullptr;
  });
  world.run(60s);
  EXPECT_EQ(told, true);
}

TEST(SimWorldTest, AMutexThatIsGivenUpGoesToWhoWaits) {
  for (const ModelKind kind : {ModelKind::kLease, ModelKind::kPush, ModelKind::kSession}) {
    SimWorld world{10, {.kind = kind}};
    std::vector<std::string> order;
    for (const char* name : {"a", "b"}) {
      world.add_node(name).run([&](SimNode& node) {
        auto client = std::make_shared<Client>(node.client());
        acquire_async(*client, "report", {}, [&](Acquired got) {
          order.push_back(node.name());
          auto held = std::make_shared<HeldMutex>(std::move(got.held));
          node.post(3s, [held] { held->release(); });
        });
        return client;
      });
    }
    world.run(10s);
    EXPECT_EQ(order.size(), 2U) << to_string(kind);
  }
}

struct FireAndForget {
  struct promise_type {
    FireAndForget get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

TEST(SimWorldTest, CoroutinesAwaitAMutexInVirtualTime) {
  SimWorld world{11};
  Token token = 0;
  const auto work = [](const Client& client, Token& seen) -> FireAndForget {
    const HeldMutex held = co_await acquire(client, "report");
    seen = held.token();
  };
  world.add_node("a").run([&](SimNode& node) {
    auto client = std::make_shared<Client>(node.client());
    work(*client, token);
    return client;
  });
  world.run(1s);
  EXPECT_GT(token, 0U);
}

TEST(SimWorldTest, AnObserverSeesWhoLeads) {
  struct Watcher : MutexRetriever {
    const std::string& mutex() const override { return name; }
    void notify_owner(const MutexState& state) override { seen = state.after.id; }
    const std::string name = "report";
    std::string seen;
  };
  SimWorld world{12};
  Leaders leaders{world};
  world.add_node("a").run(leaders.program());
  const auto watcher = std::make_shared<Watcher>();
  world.add_node("eye").run([&](SimNode& node) {
    auto service =
        std::make_shared<MutexRetrievalService>(node.client(), watcher, ContendOptions{});
    service->start();
    return service;
  });
  world.run(10s);
  EXPECT_TRUE(watcher->seen.starts_with("a~")) << watcher->seen;
}

TEST(SimWorldTest, NothingHappensAfterAViolationAndTheFirstCounts) {
  SimWorld world{13, {.kind = ModelKind::kLease, .records_timeline = true}};
  int later = 0;
  world.world().at(5s, [&] {
    world.violate("mine", "first");
    world.violate("mine", "second");
  });
  world.world().at(6s, [&] { ++later; });
  world.run(10s);
  EXPECT_EQ(later, 0);
  ASSERT_TRUE(world.violation());
  EXPECT_EQ(world.violation()->what, "first");
  EXPECT_EQ(world.violation()->at, nanoseconds{5s});
  EXPECT_EQ(world.timeline().back(), "    5.000 s  VIOLATION of mine: first");
}

TEST(SimWorldTest, AWorldThatSpinsIsAViolation) {
  SimWorld world{14, {.most_events = 100}};
  std::function<void()> again = [&] { world.world().after(0s, again); };
  again();
  world.run(1s);
  ASSERT_TRUE(world.violation());
  EXPECT_EQ(world.violation()->promise, "progress");
}

TEST(FaultPlanTest, DoesOnlyWhatIsAskedFor) {
  std::uint64_t cuts = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SimWorld world{seed};
    Leaders leaders{world};
    for (const char* name : {"a", "b"}) world.add_node(name).run(leaders.program());
    world.plan_faults({.crashes = false, .pauses = false, .restarts = false});
    world.run(75s);
    cuts += world.counts().cuts;
    EXPECT_EQ(world.counts().crashes + world.counts().pauses + world.counts().restarts, 0U);
  }
  EXPECT_GT(cuts, 10U);
}

TEST(FaultPlanTest, EverybodyRunsAndIsConnectedWhenTheFaultsHaveEnded) {
  std::uint64_t faults = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimWorld world{seed};
    Leaders leaders{world};
    for (const char* name : {"a", "b", "c"}) world.add_node(name).run(leaders.program());
    bool has_ended = false;
    world.plan_faults({.until = 60s, .mutexes = {"report"}, .then = [&] {
                         has_ended = world.is_server_up();
                         for (const auto& node : world.nodes()) {
                           has_ended &= node->is_up() && !node->is_paused() && !node->is_cut();
                         }
                       }});
    world.run(120s, [&] { ASSERT_LE(leaders.owners().size(), 1U) << "seed " << seed; });
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(leaders.owners().size(), 1U) << "seed " << seed;
    const SimWorld::Counts& counts = world.counts();
    faults += counts.crashes + counts.pauses + counts.cuts + counts.restarts;
  }
  EXPECT_GT(faults, 200U);
}

// Breaks when the mutex changes hands.
void second_term(SimWorld& world) {
  Token first = 0;
  for (const char* name : {"a", "b"}) {
    world.add_node(name).run([&](SimNode& node) {
      return std::make_shared<Leader>(node, [&](const MutexState& state) {
        if (first == 0) first = state.term.token();
        if (state.term.token() != first) world.violate("one term", node.name() + " leads too");
      });
    });
  }
  world.plan_faults({});
  world.run(120s);
}

TEST(AttackTest, FindsTheSeedAndReplaysItWithItsTimeline) {
  const std::optional<Finding> found = attack(second_term, {.first = 1, .count = 100});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->violation.promise, "one term");
  EXPECT_EQ(found->timeline, replay(second_term, found->seed));
  const std::string text = to_string(*found);
  EXPECT_NE(text.find("a boots\n"), std::string::npos);
  EXPECT_NE(text.find(" acquires report, token "), std::string::npos);
  EXPECT_NE(text.find("\nseed " + std::to_string(found->seed) + " breaks one term: "),
            std::string::npos);
}

TEST(AttackTest, SaysWhenAScenarioDependsOnMoreThanItsSeed) {
  int played = 0;
  const auto found = attack(
      [&](SimWorld& world) {
        if (++played == 1) world.violate("chance", "this time");
      },
      {});
  ASSERT_TRUE(found);
  EXPECT_NE(found->timeline.back().find("more than its seed"), std::string::npos);
}

TEST(AttackTest, FindsNothingWhereNothingIsBroken) {
  std::uint64_t played = 0;
  EXPECT_FALSE(attack([&](SimWorld&) { ++played; }, {.first = 7, .count = 20}));
  EXPECT_EQ(played, 20U);
}

}  // namespace
}  // namespace simba::testing
