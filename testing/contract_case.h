#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "testing/contract.h"
#include "testing/contract_recorder.h"

// What the files of the contract suite share: a fixture, and how a case comes to be known.
namespace simba::testing {

using namespace std::chrono_literals;

// A lease that ends while the test waits for it, and one that does not end.
inline constexpr milliseconds kShortTtl = 300ms, kShortTransition = 200ms;
inline constexpr milliseconds kLongTtl = 60s, kLongTransition = 30s;
// Longer than anything takes on a busy machine.
inline constexpr milliseconds kPatience = 45s;

// Looks again and again until `done()`; false when that took too long.
bool eventually(const std::function<bool()>& done, milliseconds patience = kPatience);

class ContractTest : public ::testing::Test {
 public:
  void set_up(std::string case_name, const ContractFactory& factory);

 protected:
  void SetUp() override;
  void TearDown() override;

  // A name nobody else uses, not in another run either. Names of one case begin with the same
  // prefix.
  std::string name(std::string_view what = "m") const { return prefix_ + std::string(what); }
  const std::string& prefix() const { return prefix_; }
  // A wire id, new at each call.
  static std::string wire_id(std::string_view label = "c");
  std::shared_ptr<Store> connect() { return contract_->connect(); }
  StoreContract& contract() { return *contract_; }
  bool queues() const { return store->traits().queues_waiters; }

  static LocalTime soon() { return BootClock::now() + 30s; }
  // Answers that must be observations; anything else throws.
  static Observation seen(const Answer& answer);
  static Observation contend(Store& on, const Claim& claim);
  static Observation take(Store& on, std::string_view mutex, std::string_view id,
                          milliseconds ttl = kLongTtl, milliseconds transition = kLongTransition,
                          Token floor = 0);
  static Observation renew(Store& on, std::string_view mutex, std::string_view id, Token token,
                           milliseconds ttl = kLongTtl, milliseconds transition = kLongTransition);
  static void release(Store& on, std::string_view mutex, std::string_view id, Token token = 0);
  static Observation observe(Store& on, std::string_view mutex);
  // A take that is granted once whoever has the mutex has lost it; what it was told on the way.
  Observation take_when_free(Store& on, std::string_view mutex, std::string_view id,
                             std::vector<Observation>* refusals = nullptr);
  // The names of this case, as pages of so many give them; `between` runs after each of them.
  std::vector<std::string> by_pages(Store& on, std::size_t limit,
                                    const std::function<void(int page)>& between = {}) const;
  // A take that must fail, and leaves no place in a queue behind.
  Observation try_in_vain(Store& on, std::string_view mutex, std::string_view id);

  static bool owns(const Observation& seen, std::string_view id) {
    return seen.owner.is_owner(id) && seen.owner.token != 0 && !seen.is_free();
  }

  Recorder recorder;
  std::shared_ptr<Store> store;  // one connection

 private:
  std::string case_name_, prefix_;
  ContractFactory factory_;
  std::unique_ptr<StoreContract> contract_;
};

// For cases that talk to the store directly, about one mutex.
class CallContract : public ContractTest {
 protected:
  std::string m = "set in SetUp";
  const std::string a = wire_id("a"), b = wire_id("b");

  void SetUp() override {
    ContractTest::SetUp();
    m = name();
  }
};

struct ContractCase {
  const char* name;
  const char* file;
  int line;
  std::function<ContractTest*()> make;
};
bool add_contract_case(ContractCase added);

// A library drops an object file nobody speaks of: the suite speaks of each.
void link_call_cases();
void link_operator_cases();
void link_batch_cases();
void link_name_cases();
void link_watch_cases();
void link_service_cases();
void link_succession_cases();
void link_observer_cases();
void link_original_cases();
void link_locker_cases();
void link_scheduler_cases();
void link_timing_cases();

}  // namespace simba::testing

// NOLINTBEGIN(bugprone-macro-parentheses): names of classes
#define SIMBA_CASE(Fixture, Name)                                                                 \
  class Name : public Fixture {                                                                   \
    void TestBody() override;                                                                     \
  };                                                                                              \
  [[maybe_unused]] const bool added_##Name = ::simba::testing::add_contract_case(                 \
      {#Name, __FILE__, __LINE__, []() -> ::simba::testing::ContractTest* { return new Name; }}); \
  void Name::TestBody()
// NOLINTEND(bugprone-macro-parentheses)
