#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "simba/store.h"

// The contract suite: what every store has to do, as tests. For authors of stores.
//
//   class MyContract : public simba::testing::StoreContract {
//     std::shared_ptr<simba::Store> connect() override { return open_mine("localhost:4711"); }
//   };
//   SIMBA_CONTRACT(Mine, [] { return std::make_unique<MyContract>(); })
//
// Link simba::contract and GTest::gtest_main. Each case is a test `Mine.ACaseIsASentence` with
// mutexes of its own, so that cases may run at the same time, in processes of their own, on one
// server. The slow ones sleep: run all of them side by side and the suite takes as long as the
// longest, MultiContend with its 30 s.
namespace simba::testing {

// One store with its data. Made anew for each case.
class StoreContract {
 public:
  virtual ~StoreContract() = default;

  // A new connection to the same data, as another process would have.
  virtual std::shared_ptr<Store> connect() = 0;

  // Locks the row of a mutex from outside until the returned object goes. Null: there are no rows
  // that somebody else could lock.
  virtual std::shared_ptr<void> block_row(std::string_view mutex);

  // Cases this store cannot pass, each with its reason: printed, and skipped.
  virtual std::map<std::string, std::string> exceptions() const { return {}; }
};

using ContractFactory = std::function<std::unique_ptr<StoreContract>()>;

// Registers every case under this name, or only these: for a store that another test holds to all
// of them, here on a cluster or while something goes wrong. True, so that it can be called before
// main.
bool add_contract(std::string name, ContractFactory factory, std::set<std::string> only = {});

}  // namespace simba::testing

// The last arguments are the factory: a lambda may hold commas.
#define SIMBA_CONTRACT(name, ...)                     \
  [[maybe_unused]] const bool simba_contract_##name = \
      ::simba::testing::add_contract(#name, __VA_ARGS__);
