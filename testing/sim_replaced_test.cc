// A simulated store that is replaced under its clients.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "simba/contend_service.h"
#include "testing/sim_world.h"

namespace simba::testing {
namespace {

using namespace std::chrono_literals;

// A process that leads in both mutexes, or waits to, and remembers its terms.
struct Leader {
  Leader(SimNode& node, std::vector<Term>& terms) : client(node.client()) {
    for (const char* mutex : {"report", "invoice"}) {
      services.push_back(std::make_unique<MutexContendService>(
          client, make_contender(
                      mutex,
                      {.on_acquired = [&](const MutexState& state) { terms.push_back(state.term); },
                       .on_released = {}},
                      node.name())));
      services.back()->start();
    }
  }
  Client client;
  std::vector<std::unique_ptr<MutexContendService>> services;
};

class SimReplacedTest : public ::testing::TestWithParam<ModelKind> {
 protected:
  static bool owns_any(const std::vector<Term>& terms, std::size_t from = 0) {
    for (std::size_t i = from; i < terms.size(); ++i) {
      if (terms[i].is_owner()) return true;
    }
    return false;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, SimReplacedTest,
                         ::testing::Values(ModelKind::kLease, ModelKind::kPush,
                                           ModelKind::kSession),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST_P(SimReplacedTest, TheNextAnswerEndsAllTermsOfAClientAndItGoesOnInTheNewStore) {
  SimWorld world{1, {.kind = GetParam()}};
  std::vector<Term> terms;
  SimNode& node = world.add_node("a");
  node.run([&](SimNode& process) { return std::make_shared<Leader>(process, terms); });
  world.run(1s);
  ASSERT_EQ(terms.size(), 2U);
  const Token last = world.replace_store();
  EXPECT_TRUE(owns_any(terms)) << "it cannot know yet";
  world.run(30s, [&] {
    if (node.reopenings() == 0) return;
    ASSERT_FALSE(terms[0].is_owner() || terms[1].is_owner()) << "it was told";
  });
  EXPECT_EQ(node.reopenings(), 1U);
  ASSERT_GE(terms.size(), 4U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(terms[i].loss().reason, LossReason::kReplaced);
  for (std::size_t i = 2; i < terms.size(); ++i) EXPECT_GT(terms[i].token(), last);
  EXPECT_TRUE(owns_any(terms, 2));
}

TEST_P(SimReplacedTest, AProcessThatBootsAfterwardsKnowsNoOther) {
  SimWorld world{2, {.kind = GetParam()}};
  std::vector<Term> terms;
  world.replace_store();
  SimNode& node = world.add_node("a");
  node.run([&](SimNode& process) { return std::make_shared<Leader>(process, terms); });
  world.run(20s);
  EXPECT_EQ(node.reopenings(), 0U);
  EXPECT_TRUE(owns_any(terms));
}

}  // namespace
}  // namespace simba::testing
