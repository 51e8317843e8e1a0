#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "simba/client.h"
#include "simba/contend_service.h"
#include "testing/contract_case.h"
#include "testing/faulty_store.h"

// For the cases that run the engine on a store: contenders that write down what they were told.
namespace simba::testing {

// What a contender or an observer was told, and when, in one order for all witnesses of the
// process.
struct Notice {
  enum class Kind { kAcquired, kReleased, kOther };
  Kind kind{};
  MutexState state;
  std::uint64_t begun = 0, ended = 0;  // places in that order; ended is 0 while it runs
};

// A contender that checks what must hold of its notices whatever the case: one at a time, acquired
// and released in turns, each with its own before and after.
//
// Threads: any.
class Witness : public MutexContender {
 public:
  Witness(std::string mutex, Recorder& recorder, std::string label = "c");

  void notify_owner(const MutexState& state) override;

  // To be set before it is started. They may throw: the engine has to live with it.
  std::function<void(const MutexState&)> acquired, released;

  std::vector<Notice> notices() const;
  std::vector<Notice> notices(Notice::Kind kind) const;
  std::size_t acquisitions() const { return notices(Notice::Kind::kAcquired).size(); }
  std::size_t releases() const { return notices(Notice::Kind::kReleased).size(); }
  bool waits_for_acquisitions(std::size_t count) const {
    return eventually([&] { return acquisitions() >= count; });
  }
  bool waits_for_releases(std::size_t count) const {
    return eventually([&] {
      const auto all = notices(Notice::Kind::kReleased);
      return all.size() >= count && all[count - 1].ended != 0;
    });
  }
  static std::uint64_t next_place();

 private:
  void check(const MutexState& state);

  Recorder& recorder_;
  mutable std::mutex guard_;
  std::vector<Notice> notices_;  // guarded by guard_
  bool holds_ = false;           // guarded by guard_
  std::atomic<int> inside_{0};
};

// A faulty store whose claims can be held up: before the store hears of them, or after it has acted
// and before anybody hears of that.
class GatedStore : public FaultyStore {
 public:
  using Gate = std::function<void(std::span<const Claim>)>;
  using FaultyStore::FaultyStore;

  // To be set before the first call.
  Gate before_claims, before_answers;

  Answers contend(std::span<const Claim> claims, LocalTime deadline) override;
};

// Holds up whoever comes until it is opened.
class Door {
 public:
  void pass();
  void open();
  int waiting() const { return waiting_; }

 private:
  std::mutex guard_;
  std::condition_variable opened_;
  bool open_ = false;  // guarded by guard_
  std::atomic<int> waiting_{0};
};

// The leadership of one process: a connection, a client, a contender and its service.
struct Node {
  std::shared_ptr<GatedStore> store;
  std::shared_ptr<Client> client;
  std::shared_ptr<Witness> witness;
  std::unique_ptr<MutexContendService> service;
};

class EngineContract : public ContractTest {
 protected:
  // A lease that ends while a case waits for it. A machine that stands still for seconds loses it.
  static ContendOptions calm();
  // A lease that no busy machine loses by accident, and that is renewed every second.
  static ContendOptions steady();
  // The same with leases that last for ever: whatever happens soon happens for another reason.
  static ContendOptions long_lease();
  // Works until its term ends, as leaders do.
  static std::function<void(const MutexState&)> until_lost();

  std::shared_ptr<GatedStore> connect_faulty() { return std::make_shared<GatedStore>(connect()); }
  Client client(const ContendOptions& options = calm()) { return client_on(connect(), options); }
  static Client client_on(std::shared_ptr<Store> on, const ContendOptions& options = calm());
  // Like another process: with a connection and an engine of its own.
  Node node(std::string_view mutex, const ContendOptions& options = calm(),
            std::string label = "c");
  bool can_push(Store& on);
  // Waits until these mutexes have been renewed, by what the store says and by what their owners
  // believe; false when one of them is lost meanwhile, or nobody renews it.
  bool are_renewed(const std::map<std::string, Term>& held);
  // Nobody owns it, and nobody comes to own it by a call that was still under way.
  void expect_left_free(std::string_view mutex);
};

}  // namespace simba::testing
