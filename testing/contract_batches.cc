#include <algorithm>
#include <map>
#include <thread>

#include "testing/contract_case.h"
#include "testing/contract_engine.h"

// Many claims in one call: nobody suffers from a neighbour.
namespace simba::testing {

void link_batch_cases() {}

namespace {

// A batch holds each mutex once, sorted.
SIMBA_CASE(CallContract, AHundredClaimsAreAnsweredInOrder) {
  std::vector<std::string> names, ids;
  for (int i = 0; i < 100; ++i) {
    names.push_back(name("m" + std::to_string(100 + i)));
    ids.push_back(wire_id());
  }
  std::vector<Token> tokens(100);
  for (std::size_t i = 0; i < 100; i += 4) tokens[i] = take(*store, names[i], ids[i]).owner.token;
  for (std::size_t i = 1; i < 100; i += 4) take(*store, names[i], "somebody-else");
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < 100; ++i) {
    claims.push_back({names[i], ids[i], tokens[i], 0, kLongTtl, kLongTransition});
  }
  const Answers answers = store->contend(claims, soon());
  ASSERT_EQ(answers.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) {
    const Observation answer = seen(answers[i]);
    EXPECT_EQ(answer.owner.id, i % 4 == 1 ? "somebody-else" : ids[i]) << i;
    if (i % 4 == 0) {
      EXPECT_EQ(answer.owner.token, tokens[i]) << i;
    }
  }
  ASSERT_EQ(store->release(claims, soon()).size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(observe(*store, names[i]).owner.id, i % 4 == 1 ? "somebody-else" : "") << i;
  }
}

SIMBA_CASE(CallContract, OneBadClaimDoesNotFailItsNeighbours) {
  const std::string long_name = name("b") + std::string(store->traits().max_mutex_length, 'x');
  const std::string long_id(store->traits().max_wire_id_length + 1, 'y');
  const std::vector<std::string> names{name("a"), long_name, name("c"), name("d")};
  const std::vector<std::string> ids{a, b, long_id, wire_id()};
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < names.size(); ++i) {
    claims.push_back({names[i], ids[i], 0, 0, kLongTtl, kLongTransition});
  }
  const Answers answers = store->contend(claims, soon());
  ASSERT_EQ(answers.size(), names.size());
  EXPECT_TRUE(owns(seen(answers[0]), ids[0]));
  EXPECT_TRUE(owns(seen(answers[3]), ids[3]));
  for (const std::size_t bad : {1u, 2u}) {
    if (const auto* error = std::get_if<Error>(&answers[bad])) {
      EXPECT_FALSE(error->is_transient()) << "retrying does not help: " << error->what();
    } else {
      EXPECT_EQ(seen(answers[bad]).owner.id, ids[bad]) << "a part of the id";
      EXPECT_TRUE(owns(observe(*store, names[bad]), ids[bad])) << "held under a part of the name";
    }
  }
  // What does not fit is not cut to fit.
  const std::string cut = long_name.substr(0, store->traits().max_mutex_length);
  EXPECT_TRUE(observe(*store, cut).is_free());
  EXPECT_NE(observe(*store, names[2]).owner.id,
            long_id.substr(0, store->traits().max_wire_id_length));
}

SIMBA_CASE(CallContract, OneBlockedRowDoesNotHoldUpItsNeighbours) {
  const std::vector<std::string> names{name("a"), name("b"), name("c")};
  for (const std::string& each : names) release(*store, each, a, take(*store, each, a).owner.token);
  std::shared_ptr<void> lock = contract().block_row(names[1]);
  if (!lock) GTEST_SKIP() << "this store has no rows that somebody else could lock";
  std::vector<Claim> claims;
  for (const std::string& each : names)
    claims.push_back({each, b, 0, 0, kLongTtl, kLongTransition});
  const LocalTime began = BootClock::now();
  const Answers answers = store->contend(claims, began + 30s);
  EXPECT_LT(BootClock::now() - began, 20s) << "it waited for the row";
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(owns(seen(answers[0]), b));
  EXPECT_FALSE(std::holds_alternative<Observation>(answers[1])) << "the row is locked";
  EXPECT_TRUE(owns(seen(answers[2]), b));
  lock.reset();
  EXPECT_TRUE(owns(take_when_free(*store, names[1], b), b));
}

SIMBA_CASE(EngineContract, ManyMutexesOfOneProcessAreAllRenewed) {
  constexpr std::size_t kMutexes = 60;
  const auto faulty = connect_faulty();
  const Client one = client_on(faulty, steady());
  std::vector<std::shared_ptr<Witness>> witnesses;
  std::vector<std::unique_ptr<MutexContendService>> services;
  for (std::size_t i = 0; i < kMutexes; ++i) {
    witnesses.push_back(std::make_shared<Witness>(name(std::to_string(i)), recorder));
    services.push_back(std::make_unique<MutexContendService>(one, witnesses.back()));
    services.back()->start();
  }
  for (const auto& witness : witnesses) ASSERT_TRUE(witness->waits_for_acquisitions(1));
  std::map<std::string, Term> held;
  for (std::size_t i = 0; i < kMutexes; ++i) {
    held.emplace(name(std::to_string(i)), services[i]->term());
  }
  EXPECT_TRUE(are_renewed(held));
  for (std::size_t i = 0; i < kMutexes; ++i) {
    EXPECT_TRUE(services[i]->is_owner()) << i;
    EXPECT_EQ(witnesses[i]->releases(), 0u) << i;
  }
  services.clear();
  for (std::size_t i = 0; i < kMutexes; ++i)
    EXPECT_TRUE(observe(*store, name(std::to_string(i))).is_free());
}

// As many calls are held up as there may be: who comes meanwhile is due with the next one.
SIMBA_CASE(EngineContract, TwoContendersOfOneProcessNeverMeetInOneCall) {
  constexpr int kCalls = 4;
  Door door;
  const auto faulty = connect_faulty();
  faulty->before_claims = [&](std::span<const Claim> claims) {
    for (const Claim& claim : claims) {
      if (claim.mutex.starts_with(name("held"))) return door.pass();
    }
  };
  const Client one = client_on(faulty, long_lease());
  std::vector<std::unique_ptr<MutexContendService>> services;
  const auto start = [&](const std::string& mutex) {
    const auto witness = std::make_shared<Witness>(mutex, recorder);
    services.push_back(std::make_unique<MutexContendService>(one, witness));
    services.back()->start();
  };
  for (int i = 0; i < kCalls; ++i) {
    start(name("held" + std::to_string(i)));
    EXPECT_TRUE(eventually([&] { return door.waiting() == i + 1; }));
  }
  for (const char* each : {"b", "a", "b", "a", "c"}) start(name(each));
  door.open();
  const auto owners = [&] {
    return std::count_if(services.begin(), services.end(),
                         [](const auto& each) { return each->is_owner(); });
  };
  EXPECT_TRUE(eventually([&] { return owners() == kCalls + 3; }));
  for (const Asked& asked : faulty->asked()) {
    if (asked.what != Asked::What::kContend) continue;
    const auto out_of_order = [](const auto& left, const auto& right) {
      return left.mutex >= right.mutex;
    };
    const auto found = std::adjacent_find(asked.claims.begin(), asked.claims.end(), out_of_order);
    EXPECT_EQ(found, asked.claims.end()) << "twice or not sorted: " << found->mutex;
  }
  EXPECT_EQ(owners(), kCalls + 3);
}

SIMBA_CASE(EngineContract, ABadAndABlockedMutexDoNotHarmTheirNeighbours) {
  const auto faulty = connect_faulty();
  faulty->spoil(name("bad"), Error(Errc::kCorrupt, "makes no sense"));
  faulty->block(name("blocked"));
  const Client one = client_on(faulty, steady());
  std::map<std::string, std::shared_ptr<Witness>> witnesses;
  std::map<std::string, std::unique_ptr<MutexContendService>> services;
  for (const char* each : {"a", "bad", "blocked", "c", "d"}) {
    const auto witness = std::make_shared<Witness>(name(each), recorder);
    witnesses[each] = witness;
    services[each] = std::make_unique<MutexContendService>(one, witness);
    services[each]->start();
  }
  std::map<std::string, Term> held;
  for (const char* good : {"a", "c", "d"}) {
    ASSERT_TRUE(witnesses[good]->waits_for_acquisitions(1)) << good;
    held.emplace(name(good), services[good]->term());
  }
  EXPECT_TRUE(are_renewed(held));
  for (const char* good : {"a", "c", "d"}) EXPECT_EQ(witnesses[good]->releases(), 0u) << good;
  EXPECT_EQ(witnesses["bad"]->acquisitions(), 0u);
  EXPECT_EQ(witnesses["blocked"]->acquisitions(), 0u);
  faulty->unblock(name("blocked"));
  faulty->unspoil(name("bad"));
  EXPECT_TRUE(witnesses["blocked"]->waits_for_acquisitions(1)) << "it recovers";
  EXPECT_TRUE(witnesses["bad"]->waits_for_acquisitions(1)) << "it recovers";
}

}  // namespace
}  // namespace simba::testing
