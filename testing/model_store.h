#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"

namespace simba::testing {

enum class ModelKind {
  kLease,      // rows and a clock, no hints: SQL
  kPush,       // the same with hints: Redis, LISTEN/NOTIFY
  kSession,    // a queue of waiters: ZooKeeper
  kForgetful,  // hints, and a fail-over that loses the last writes
};
const char* to_string(ModelKind kind);

// A server, as a model: what it knows and what time it thinks it is. Clients reach it through
// stores of their own.
//
// Threads: any.
class ModelServer {
 public:
  ModelServer(ModelKind kind, std::function<StoreTime()> clock);
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  Answers contend(std::span<const Claim> claims);
  Answers release(std::span<const Claim> claims);
  Answers observe(std::span<const std::string_view> mutexes);
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how);
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit);
  Observation peek(std::string_view mutex);
  StoreTime now() const { return clock_(); }
  // How often anything may have been written: rows are the same while this is, but for what time
  // does to them.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  // Null: this kind does not push.
  std::unique_ptr<Watch> watch(std::string_view mutex, std::function<void()> wake);

  // Somebody else locks the row of a mutex: claims and releases of it are Blocked until it is let
  // go.
  void block(std::string_view mutex);
  void unblock(std::string_view mutex);
  bool is_blocked(std::string_view mutex);

  // Told of every write to a row: what was asked, and the row before and after. For oracles.
  using OnWrite = std::function<void(const Claim& claim, bool is_release, const Observation& before,
                                     const Observation& after)>;
  void on_write(OnWrite hook) { on_write_ = std::move(hook); }

  // Another store stands under the same name, and nothing is in it: a file that was deleted. Tokens
  // go on growing, as a store that can forget them has to see to (R2).
  // What is at most the last token of the old one.
  Token replace();
  // How often that happened.
  std::uint64_t replacements() const { return replacements_.load(std::memory_order_relaxed); }

  // For a fail-over: the state as of now, and back to it.
  void remember();
  void fail_over();

  ModelKind kind() const { return kind_; }

 private:
  struct Tables;
  Claim with_floor(const Claim& claim, StoreTime now) const;

  const ModelKind kind_;
  const std::function<StoreTime()> clock_;
  std::mutex guard_;
  Observation look(std::string_view mutex, StoreTime now) const;
  template <class Act>
  Answer act(const Claim& claim, bool is_release, StoreTime now, Act act);

  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint64_t> replacements_{0};
  OnWrite on_write_;
  std::set<std::string, std::less<>> blocked_;  // guarded by guard_
  Token floor_ = 0;                             // of a store that replaced another; likewise
  const std::unique_ptr<Tables> tables_;        // what is in it is guarded by guard_
};

// One client's way to a model server. `carry` takes hints to the client: late, twice, or never.
// While `is_replaced()`, what the client has opened is not what stands there now: every call says
// so (Errc::kReplaced).
std::shared_ptr<Store> connect_model(
    std::shared_ptr<ModelServer> server,
    std::function<void(const std::function<void()>& hint)> carry = {},
    std::function<bool()> is_replaced = {});

}  // namespace simba::testing
