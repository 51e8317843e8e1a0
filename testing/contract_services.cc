#include <thread>

#include "testing/contract_engine.h"

// Leadership with callbacks: the first four cases of the original's suite (the fifth, Schedule, is
// with the scheduler), and how a service begins and ends.
namespace simba::testing {

void link_service_cases() {}

namespace {

using ServiceContract = EngineContract;

SIMBA_CASE(ServiceContract, Start) {
  Node n = node(name(), long_lease());
  EXPECT_EQ(n.service->status(), Status::kInitial);
  EXPECT_FALSE(n.service->is_owner());
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  EXPECT_EQ(n.service->status(), Status::kRunning);
  EXPECT_TRUE(n.service->running());
  EXPECT_TRUE(n.service->is_owner());
  EXPECT_TRUE(n.service->is_in_ttl());
  EXPECT_TRUE(n.service->has_owner());
  const Observation held = observe(*store, name());
  EXPECT_EQ(held.owner.id, n.service->term().wire_id());
  EXPECT_EQ(held.owner.token, n.service->term().token());
  EXPECT_EQ(n.service->after_owner().id, held.owner.id);
  n.service->stop();
  EXPECT_EQ(n.service->status(), Status::kInitial);
  EXPECT_FALSE(n.service->is_owner());
  EXPECT_FALSE(n.service->is_in_ttl());
  EXPECT_EQ(n.witness->releases(), 1u);
  EXPECT_EQ(n.witness->notices(Notice::Kind::kReleased)[0].state.loss.reason,
            LossReason::kReleased);
  expect_left_free(name());
}

SIMBA_CASE(ServiceContract, Restart) {
  Node n = node(name(), long_lease());
  Token last = 0;
  std::string last_id;
  for (std::size_t round = 1; round <= 3; ++round) {
    n.service->start();
    ASSERT_TRUE(n.witness->waits_for_acquisitions(round));
    const Term term = n.service->term();
    EXPECT_GT(term.token(), last);
    EXPECT_NE(term.wire_id(), last_id) << "a wire id is never used twice";
    last = term.token();
    last_id = term.wire_id();
    n.service->stop();
    EXPECT_EQ(n.service->status(), Status::kInitial);
    EXPECT_EQ(n.witness->releases(), round);
    EXPECT_TRUE(observe(*store, name()).is_free());
  }
}

SIMBA_CASE(ServiceContract, Guard) {
  Node n = node(name(), steady());
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  const Term term = n.service->term();
  EXPECT_TRUE(are_renewed({{name(), term}})) << "nobody renewed it";
  EXPECT_TRUE(n.service->is_owner());
  const Observation held = observe(*store, name());
  EXPECT_TRUE(owns(held, term.wire_id()));
  EXPECT_EQ(held.owner.token, term.token()) << "a renewal keeps the token";
  EXPECT_FALSE(term.lost().stop_requested());
  EXPECT_EQ(n.witness->acquisitions(), 1u);
  EXPECT_EQ(n.witness->releases(), 0u);
  n.service->stop();
}

// Ten contenders for 30 s, and longer where they are slow. Two witnesses: a counter in the
// callbacks, and a sampler for which, once a "yes" with token n has been heard, no later question
// may be answered "yes" with a smaller one.
SIMBA_CASE(ServiceContract, MultiContend) {
  constexpr std::size_t kContenders = 10;
  std::atomic<int> owners{0};
  std::atomic<Token> last{0};
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < kContenders; ++i) {
    ContendOptions options = steady();
    options.max_hold = milliseconds{50 + 40 * i};
    nodes.push_back(node(name(), options));
    nodes.back().witness->acquired = [&](const MutexState& state) {
      recorder.expect(owners.fetch_add(1) == 0, "two owners");
      recorder.expect(state.term.token() > last.exchange(state.term.token()),
                      "a token did not grow");
    };
    nodes.back().witness->released = [&](const MutexState&) {
      recorder.expect(owners.fetch_sub(1) == 1, "not the only owner when it ended");
    };
  }
  for (Node& n : nodes) n.service->start();
  std::atomic<bool> done{false};
  std::vector<std::thread> samplers;
  std::atomic<Token> heard{0};
  for (int i = 0; i < 2; ++i) {
    samplers.emplace_back([&] {
      while (!done) {
        for (const Node& n : nodes) {
          const Token before = heard;
          const Term term = n.service->term();
          if (!term.is_in_ttl()) continue;
          recorder.expect(term.token() >= before,
                          "an earlier owner is in its ttl after a later one was");
          Token highest = heard;
          while (highest < term.token() && !heard.compare_exchange_weak(highest, term.token())) {
          }
        }
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  const auto contended = [&] {
    std::size_t terms = 0, winners = 0;
    for (const Node& n : nodes) {
      terms += n.witness->acquisitions();
      winners += n.witness->acquisitions() > 0 ? 1 : 0;
    }
    return terms >= 15 && winners >= 3;
  };
  const LocalTime began = BootClock::now();
  const auto goes_on = [&] {
    const nanoseconds lasted = BootClock::now() - began;
    return lasted < 30s || (lasted < 75s && !contended());
  };
  for (std::size_t round = 0; goes_on(); ++round) {
    std::this_thread::sleep_for(300ms);
    Node& n = nodes[round % kContenders];  // comings and goings
    if (round % 3 == 0) {
      n.service->stop();
      n.service->start();
    }
  }
  done = true;
  for (std::thread& sampler : samplers) sampler.join();
  for (Node& n : nodes) n.service->stop();
  EXPECT_EQ(owners, 0);
  std::size_t terms = 0;
  std::string each;
  for (const Node& n : nodes) {
    each += ' ' + std::to_string(n.witness->acquisitions());
    terms += n.witness->acquisitions();
    EXPECT_EQ(n.witness->acquisitions(), n.witness->releases());
  }
  EXPECT_TRUE(contended()) << "the mutex hardly changed hands:" << each;
  RecordProperty("terms", static_cast<int>(terms));
  expect_left_free(name());
}

SIMBA_CASE(ServiceContract, TheWrongStateIsAnErrorThatNamesIt) {
  Node n = node(name(), long_lease());
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kMisuse);
      return error.what();
    }
    return "nothing was wrong";
  };
  EXPECT_NE(refusal([&] { n.service->stop(); }).find("INITIAL"), std::string::npos);
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  EXPECT_NE(refusal([&] { n.service->start(); }).find("RUNNING"), std::string::npos);
  EXPECT_TRUE(n.service->is_owner()) << "the refused call did no harm";
  n.service->stop();
  EXPECT_NE(refusal([&] { n.service->stop(); }).find("INITIAL"), std::string::npos);
}

SIMBA_CASE(ServiceContract, AnOnAcquiredThatReturnsOnlyOnLostEndsWithTheStop) {
  Node n = node(name(), long_lease());
  n.witness->acquired = until_lost();
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  EXPECT_TRUE(n.service->stop(20s));
  EXPECT_EQ(n.witness->releases(), 1u);
  expect_left_free(name());
}

SIMBA_CASE(ServiceContract, TheStoreIsToldOnlyAfterTheWorkHasReturned) {
  ContendOptions options = long_lease();
  options.grace = options.transition / 2;  // on a busy machine the work takes its time
  Node n = node(name(), options);
  n.witness->acquired = until_lost();
  n.witness->released = [&](const MutexState& state) {
    for (int i = 0; i < 20; ++i) {
      recorder.guard([&] {
        recorder.expect(owns(observe(*store, name()), state.self),
                        "released while the work still ran");
      });
      std::this_thread::sleep_for(10ms);
    }
  };
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  n.service->stop();
  EXPECT_EQ(n.witness->releases(), 1u);
  expect_left_free(name());
}

SIMBA_CASE(ServiceContract, WorkThatOutlivesItsGraceKeepsTheLeaseUntilItRunsOut) {
  ContendOptions options = calm();
  options.ttl = 4s;  // it is still its own when it is stopped
  options.transition = 1s;
  Node n = node(name(), options);
  std::atomic<bool> may_return{false};
  n.witness->acquired = [&](const MutexState&) {
    while (!may_return) std::this_thread::sleep_for(1ms);
  };
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  const Term term = n.service->term();
  EXPECT_FALSE(n.service->stop(50ms));
  EXPECT_EQ(term.loss().reason, LossReason::kAbandoned);
  EXPECT_EQ(n.store->releases(), 0u) << "released under running work";
  EXPECT_TRUE(eventually([&] { return observe(*store, name()).is_free(); }))
      << "it does not run out";
  may_return = true;
  EXPECT_TRUE(n.witness->waits_for_releases(1));
}

SIMBA_CASE(ServiceContract, StopInACallbackReturnsAtOnceAndOnReleasedFollows) {
  Node n = node(name(), long_lease());
  std::atomic<bool> returned{false};
  n.witness->acquired = [&](const MutexState&) {
    recorder.guard([&] { n.service->stop(); });
    returned = true;
  };
  n.witness->released = [&](const MutexState&) {
    recorder.expect(returned, "on_released inside on_acquired");
  };
  n.service->start();
  EXPECT_TRUE(n.witness->waits_for_releases(1));
  EXPECT_TRUE(eventually([&] { return n.service->status() == Status::kInitial; }));
  expect_left_free(name());
  n.witness->acquired = nullptr;
  n.service->start();
  EXPECT_TRUE(n.witness->waits_for_acquisitions(2)) << "it can be started again";
  n.service->stop();
}

SIMBA_CASE(ServiceContract, AServiceMayBeDestroyedInItsCallback) {
  Node n = node(name(), long_lease());
  const auto witness = n.witness;
  witness->acquired = [&](const MutexState&) { n.service.reset(); };
  n.service->start();
  EXPECT_TRUE(witness->waits_for_releases(1));
  expect_left_free(name());
}

SIMBA_CASE(ServiceContract, DestroyingARunningServiceReleasesTheMutex) {
  Node n = node(name(), long_lease());
  n.service->start();
  ASSERT_TRUE(n.witness->waits_for_acquisitions(1));
  n.client.reset();  // the service keeps what it needs
  n.service.reset();
  EXPECT_EQ(n.witness->releases(), 1u);
  expect_left_free(name());
}

}  // namespace
}  // namespace simba::testing
