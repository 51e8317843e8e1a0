#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/engine.h"
#include "simba/contender_id.h"
#include "simba/memory.h"
#include "testing/fake_executor.h"
#include "testing/faulty_store.h"

namespace simba::core {

using namespace std::chrono_literals;
using Phase = Contention::Phase;
using testing::Asked;
using testing::FakeExecutor;
using testing::FaultyStore;
using testing::HeldCall;
using Words = std::vector<std::string>;

inline const Error kUnreachable(Errc::kUnreachable, "no route");
inline const Error kLostAnswer(Errc::kTimeout, "lost answer");

inline ContendOptions calm() {
  ContendOptions options;
  options.jitter = {0ms, 0ms};
  return options;
}

// A contender and what it was told.
struct Contender {
  std::shared_ptr<Enrolled> who;
  Words told;  // "acquired", "released", "saw LABEL"
  Term term;   // of the last on_acquired
  std::function<void(const MutexState&)> on_acquired, on_released;
  int pokes = 0;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() { engine->open(); }
  void TearDown() override {
    executor->let_calls_go();
    executor->let_callbacks_go();
    store->heal();
    for (Contender& contender : contenders) engine->stop(contender.who);
    executor->advance(1min);
    for (Contender& contender : contenders) {
      EXPECT_EQ(phase(contender), Phase::kIdle) << "it does not come to an end";
    }
    engine->close(0ns);
  }

  Spec spec_of(Contender& contender, std::string label, std::string mutex, ContendOptions options) {
    Spec spec;
    spec.mutex = std::move(mutex);
    spec.label = std::move(label);
    spec.options = options;
    spec.notify = [this, &contender](const MutexState& state) { tell(contender, state); };
    spec.poke = [&contender] { ++contender.pokes; };
    return spec;
  }
  void tell(Contender& contender, const MutexState& state) {
    if (state.is_acquired()) {
      contender.told.emplace_back("acquired");
      contender.term = state.term;
      if (contender.on_acquired) contender.on_acquired(state);
    } else if (state.is_released()) {
      if (contender.on_released) contender.on_released(state);
      contender.told.emplace_back("released");
    } else {
      contender.told.push_back("saw " + std::string(label_of(state.after.id)));
    }
  }
  Contender& enroll(std::string label, std::string mutex, ContendOptions options = calm()) {
    Contender& contender = contenders.emplace_back();
    contender.who = engine->enroll(spec_of(contender, std::move(label), std::move(mutex), options));
    return contender;
  }
  Contender& contend_as(std::string label, std::string mutex, ContendOptions options = calm()) {
    Contender& contender = enroll(std::move(label), std::move(mutex), options);
    engine->start(contender.who);
    executor->run();
    return contender;
  }
  Contender& observe(std::string mutex) {
    Contender& contender = contenders.emplace_back();
    Spec spec = spec_of(contender, "", std::move(mutex), calm());
    spec.goal = Goal::kObserve;
    contender.who = engine->enroll(std::move(spec));
    engine->start(contender.who);
    executor->run();
    return contender;
  }
  // What the thread of a lock does while it waits.
  void make_all(Engine::OwnCalls& calls) {
    do {
      executor->run();
    } while (calls.make(LocalTime::max()));
  }
  // A lock: nobody is told, its user says when the work is done.
  Contender& enroll_lock(std::string mutex, ContendOptions options = calm()) {
    Contender& contender = contenders.emplace_back();
    Spec spec = spec_of(contender, "lock", std::move(mutex), options);
    spec.goal = Goal::kOnce;
    spec.notify = {};
    contender.who = engine->enroll(std::move(spec));
    return contender;
  }

  Phase phase(const Contender& contender) const { return engine->snapshot(*contender.who).phase; }
  bool is_owner(const Contender& contender) const {
    const auto term = engine->snapshot(*contender.who).term;
    return term && term->is_owner();
  }
  bool is_in_ttl(const Contender& contender) const {
    const auto term = engine->snapshot(*contender.who).term;
    return term && term->is_in_ttl();
  }
  LossReason loss(const Contender& contender) const {
    return engine->snapshot(*contender.who).term->loss().reason;
  }

  // Another process, straight at the store.
  Observation take_as(const std::string& id, const std::string& mutex, milliseconds ttl = 10s,
                      milliseconds transition = 6s) {
    const Claim claim{mutex, id, 0, 0, ttl, transition};
    return std::get<Observation>(memory->contend({&claim, 1}, {}).at(0));
  }
  void release_as(const std::string& id, const std::string& mutex) {
    const Claim claim{mutex, id};
    memory->release({&claim, 1}, {});
  }
  Observation seen(const std::string& mutex) {
    const std::string_view name = mutex;
    return std::get<Observation>(memory->observe({&name, 1}, {}).at(0));
  }
  std::string owner_of(const std::string& mutex) {
    const Observation observation = seen(mutex);
    return observation.is_free() ? "" : std::string(label_of(observation.owner.id));
  }
  std::shared_ptr<HeldCall> only_call() {
    const auto calls = executor->pending_calls();
    EXPECT_EQ(calls.size(), 1U);
    return calls.empty() ? nullptr : calls.front();
  }

  std::shared_ptr<FakeExecutor> executor = std::make_shared<FakeExecutor>();
  std::shared_ptr<Store> memory = make_memory(executor->store_clock());
  std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(memory);
  std::vector<Event::Kind> events;
  std::shared_ptr<Engine> engine =
      std::make_shared<Engine>(store, executor, [this](const Event& event) {
        if (event.kind != Event::Kind::kCalled) events.push_back(event.kind);
      });
  std::deque<Contender> contenders;
};

}  // namespace simba::core
