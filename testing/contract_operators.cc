#include <algorithm>
#include <set>

#include "testing/contract_case.h"

// What operators and observers ask for: observe, list, evict.
namespace simba::testing {

void link_operator_cases() {}

namespace {

SIMBA_CASE(CallContract, AnObserverNeverWrites) {
  EXPECT_EQ(observe(*store, m).owner, MutexOwner::none());
  EXPECT_TRUE(store->list(prefix(), {}, 10, soon()).empty()) << "looking made a row";
  const Observation held = take(*store, m, a);
  for (int i = 0; i < 5; ++i) observe(*store, m);
  const Observation after = observe(*store, m);
  EXPECT_EQ(after.owner.token, held.owner.token);
  EXPECT_LE(after.owner.transition_at, held.owner.transition_at + 50ms);
}

SIMBA_CASE(CallContract, ManyMutexesAreObservedInOneCallInOrder) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back(name("m" + std::to_string(100 + i)));
  for (std::size_t i = 0; i < names.size(); i += 3)
    take(*store, names[i], "owner-of-" + std::to_string(i));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const Answers answers = store->observe(views, soon());
  ASSERT_EQ(answers.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(seen(answers[i]).owner.id, i % 3 == 0 ? "owner-of-" + std::to_string(i) : "") << i;
  }
}

SIMBA_CASE(CallContract, TheListIsSortedAndKnowsPrefixAndLimit) {
  for (const char* each : {"b", "a1", "a%", "a_", "a0", "A0", "c"})
    take(*store, name(each), wire_id());
  const auto names = [&](const std::string& from, std::size_t limit) {
    std::vector<std::string> out;
    for (const Listed& listed : store->list(prefix() + from, {}, limit, soon())) {
      EXPECT_FALSE(listed.observation.owner.id.empty()) << listed.mutex;
      EXPECT_FALSE(listed.observation.is_free()) << listed.mutex;
      out.push_back(listed.mutex.substr(prefix().size()));
    }
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("", 100), (Names{"A0", "a%", "a0", "a1", "a_", "b", "c"}));
  EXPECT_EQ(names("a", 100), (Names{"a%", "a0", "a1", "a_"}));
  EXPECT_EQ(names("a", 2), (Names{"a%", "a0"}));
  EXPECT_EQ(names("a%", 100), (Names{"a%"})) << "a prefix is not a pattern";
  EXPECT_EQ(names("a_", 100), (Names{"a_"})) << "a prefix is not a pattern";
  EXPECT_EQ(names("nothing", 100), (Names{}));
}

SIMBA_CASE(CallContract, PagesNameWhatIsThereExactlyOnceWhateverComesAndGoes) {
  std::set<std::string> stay;
  for (const char* each : {"a", "a ~", "a0", "aa", "b", "b%", "b_", "bb", "c", "\xc3\xa4"})
    stay.insert(name(each));
  for (const std::string& each : stay) take(*store, each, wire_id());
  const std::string goes = wire_id(), first = name("a1"), last = name("z");
  take(*store, first, goes);
  take(*store, last, wire_id());
  const std::vector<std::string> names = by_pages(*store, 2, [&](int page) {
    // In front of the page and behind it.
    take(*store, name("0" + std::to_string(page)), wire_id());
    take(*store, name("c" + std::to_string(page)), wire_id());
    if (page == 2) release(*store, first, goes);
  });
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& each : stay) {
    EXPECT_EQ(std::count(names.begin(), names.end(), each), 1) << each;
  }
  const std::set<std::string> once(names.begin(), names.end());
  EXPECT_EQ(once.size(), names.size()) << "one came twice";
  EXPECT_TRUE(store->list(name("b"), name("c"), 10, soon()).empty())
      << "behind all with this prefix";
  EXPECT_EQ(store->list(name("b"), name("a"), 10, soon()).size(), 4U) << "in front of them";
  EXPECT_EQ(store->list(name("b"), name("b"), 10, soon()).size(), 3U);
  EXPECT_EQ(store->list(name("b"), name("b"), 0, soon()).size(), 0U);
}

SIMBA_CASE(CallContract, AnEvictionTakesTheNameAndKeepsTheLease) {
  const Observation held = take(*store, m, a, 600ms, 400ms);
  const auto other = connect();
  const Observation evicted = other->evict(m, a, held.owner.token, Eviction::kKeepLease, soon());
  EXPECT_EQ(evicted.owner.id, "");
  EXPECT_FALSE(owns(renew(*store, m, a, held.owner.token), a)) << "an evicted owner renewed";
  EXPECT_EQ(observe(*store, m).owner.id, "");
  const Observation next = take_when_free(*other, m, b);
  EXPECT_GT(next.now, held.owner.transition_at) << "entered early";
  EXPECT_GT(next.owner.token, held.owner.token);
}

SIMBA_CASE(CallContract, AnEvictedWireIdDoesNotTakeItsMutexAgain) {
  const Observation held = take(*store, m, a);
  store->evict(m, a, held.owner.token, Eviction::kKeepLease, soon());
  EXPECT_FALSE(owns(take(*store, m, a), a));
}

SIMBA_CASE(CallContract, AnEvictionCanFreeAtOnce) {
  const Observation held = take(*store, m, a);
  store->evict(m, a, held.owner.token, Eviction::kFreeNow, soon());
  const Observation next = take(*connect(), m, b);
  EXPECT_TRUE(owns(next, b));
  EXPECT_GT(next.owner.token, held.owner.token);
  EXPECT_FALSE(owns(renew(*store, m, a, held.owner.token), a));
  EXPECT_TRUE(owns(observe(*store, m), b));
}

SIMBA_CASE(CallContract, AnEvictionOfAnotherTermChangesNothing) {
  const Observation held = take(*store, m, a);
  const Token token = held.owner.token;
  for (const Eviction how : {Eviction::kKeepLease, Eviction::kFreeNow}) {
    EXPECT_TRUE(owns(store->evict(m, b, token, how, soon()), a));
    EXPECT_TRUE(owns(store->evict(m, a, token + 1, how, soon()), a));
    EXPECT_TRUE(owns(observe(*store, m), a));
    EXPECT_TRUE(store->evict(name("unknown"), a, token, how, soon()).is_free());
  }
  EXPECT_EQ(observe(*store, m).owner.token, token);
}

}  // namespace
}  // namespace simba::testing
