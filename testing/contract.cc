#include "testing/contract.h"

#include <algorithm>
#include <cctype>
#include <random>
#include <thread>
#include <utility>

#include "simba/contender_id.h"
#include "testing/contract_case.h"

namespace simba::testing {
namespace {

std::uint64_t random_bits() {
  static std::random_device device;
  static std::mutex guard;
  const std::lock_guard lock(guard);
  return (std::uint64_t{device()} << 32) | device();
}

struct Contract {
  std::string name;
  ContractFactory factory;
  std::set<std::string> only;  // empty: all
};

// Contracts and cases become known in any order: each meets those that came before it.
struct Meeting {
  std::vector<Contract> contracts;
  std::vector<ContractCase> cases;

  static Meeting& place() {
    static Meeting meeting;
    return meeting;
  }

  static void introduce(const Contract& contract, const ContractCase& one) {
    if (!contract.only.empty() && !contract.only.contains(one.name)) return;
    ::testing::RegisterTest(contract.name.c_str(), one.name, nullptr, nullptr, one.file, one.line,
                            [name = one.name, make = one.make, factory = contract.factory] {
                              ContractTest* test = make();
                              test->set_up(name, factory);
                              return test;
                            });
  }

  bool has(const std::string& name) const {
    return std::any_of(cases.begin(), cases.end(),
                       [&](const ContractCase& one) { return one.name == name; });
  }
};

// Of a contract of some cases: a name that is misspelt would never be missed.
class ChoiceTest : public ::testing::Test {
 public:
  explicit ChoiceTest(std::set<std::string> chosen) : chosen_(std::move(chosen)) {}
  void TestBody() override {
    for (const std::string& name : chosen_) {
      EXPECT_TRUE(Meeting::place().has(name)) << "there is no case " << name;
    }
  }

 private:
  const std::set<std::string> chosen_;
};

}  // namespace

std::shared_ptr<void> StoreContract::block_row(std::string_view) { return nullptr; }

bool add_contract(std::string name, ContractFactory factory, std::set<std::string> only) {
  for (const auto& link :
       {link_call_cases, link_operator_cases, link_batch_cases, link_name_cases, link_watch_cases,
        link_service_cases, link_succession_cases, link_observer_cases, link_original_cases,
        link_locker_cases, link_scheduler_cases, link_timing_cases}) {
    link();
  }
  Meeting& meeting = Meeting::place();
  if (!only.empty()) {
    ::testing::RegisterTest((name + "Choice").c_str(), "EveryChosenCaseExists", nullptr, nullptr,
                            __FILE__, __LINE__, [only] { return new ChoiceTest(only); });
  }
  meeting.contracts.push_back({std::move(name), std::move(factory), std::move(only)});
  for (const ContractCase& one : meeting.cases) Meeting::introduce(meeting.contracts.back(), one);
  return true;
}

bool add_contract_case(ContractCase added) {
  Meeting& meeting = Meeting::place();
  for (const auto& contract : meeting.contracts) Meeting::introduce(contract, added);
  meeting.cases.push_back(std::move(added));
  return true;
}

bool eventually(const std::function<bool()>& done, milliseconds patience) {
  const LocalTime until = BootClock::now() + patience;
  while (!done()) {
    if (BootClock::now() >= until) return done();
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

void ContractTest::set_up(std::string case_name, const ContractFactory& factory) {
  case_name_ = std::move(case_name);
  factory_ = factory;
}

void ContractTest::SetUp() {
  prefix_ = "t" + make_wire_id("", random_bits(), 0).substr(1) + ".";
  contract_ = factory_();
  const auto exceptions = contract_->exceptions();
  if (const auto it = exceptions.find(case_name_); it != exceptions.end()) {
    GTEST_SKIP() << "an exception of this store: " << it->second;
  }
  store = contract_->connect();
}

void ContractTest::TearDown() {
  recorder.check();
  store.reset();
}

std::string ContractTest::wire_id(std::string_view label) {
  return make_wire_id(label, random_bits(), random_bits());
}

Observation ContractTest::seen(const Answer& answer) {
  if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
  if (std::holds_alternative<Blocked>(answer)) throw Error(Errc::kTimeout, "the row is blocked");
  return std::get<Observation>(answer);
}

Observation ContractTest::contend(Store& on, const Claim& claim) {
  const Answers answers = on.contend({&claim, 1}, soon());
  if (answers.size() != 1) throw Error(Errc::kCorrupt, "one claim, not one answer");
  return seen(answers[0]);
}

Observation ContractTest::take(Store& on, std::string_view mutex, std::string_view id,
                               milliseconds ttl, milliseconds transition, Token floor) {
  return contend(on, {mutex, id, 0, floor, ttl, transition});
}

Observation ContractTest::renew(Store& on, std::string_view mutex, std::string_view id, Token token,
                                milliseconds ttl, milliseconds transition) {
  return contend(on, {mutex, id, token, 0, ttl, transition});
}

void ContractTest::release(Store& on, std::string_view mutex, std::string_view id, Token token) {
  const Claim claim{mutex, id, token, 0, kLongTtl, kLongTransition};
  const Answers answers = on.release({&claim, 1}, soon());
  if (answers.size() != 1) throw Error(Errc::kCorrupt, "one claim, not one answer");
  seen(answers[0]);
}

Observation ContractTest::observe(Store& on, std::string_view mutex) {
  const Answers answers = on.observe({&mutex, 1}, soon());
  if (answers.size() != 1) throw Error(Errc::kCorrupt, "one mutex, not one answer");
  return seen(answers[0]);
}

Observation ContractTest::take_when_free(Store& on, std::string_view mutex, std::string_view id,
                                         std::vector<Observation>* refusals) {
  Observation last;
  const bool granted = eventually([&] {
    last = take(on, mutex, id);
    if (owns(last, id)) return true;
    if (refusals) refusals->push_back(last);
    return false;
  });
  EXPECT_TRUE(granted) << "never granted";
  return last;
}

std::vector<std::string> ContractTest::by_pages(
    Store& on, std::size_t limit, const std::function<void(int page)>& between) const {
  constexpr int kMostPages = 1000;
  std::vector<std::string> names;
  for (int page = 0; page < kMostPages; ++page) {
    const std::vector<Listed> some =
        on.list(prefix(), names.empty() ? "" : names.back(), limit, soon());
    EXPECT_LE(some.size(), limit);
    for (const Listed& each : some) names.push_back(each.mutex);
    if (some.size() < limit) return names;
    if (between) between(page);
  }
  ADD_FAILURE() << "the pages have no end";
  return names;
}

Observation ContractTest::try_in_vain(Store& on, std::string_view mutex, std::string_view id) {
  const Observation answer = take(on, mutex, id);
  EXPECT_FALSE(owns(answer, id)) << "granted, although somebody else has it";
  if (queues()) release(on, mutex, id);
  return answer;
}

}  // namespace simba::testing
