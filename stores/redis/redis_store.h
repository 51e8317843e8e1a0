#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simba/redis.h"
#include "simba/store.h"
#include "stores/kit/this_process.h"
#include "stores/redis/session.h"

namespace simba::redis {

// The six calls: a script each, and hints.
//
// Threads: any number of calls at once; while the connection is idle each does its I/O on the
// caller's thread. In a forked child every call throws Error (kMisuse) and the destructor leaves
// everything as it is.
class RedisStore : public Store {
 public:
  RedisStore(std::shared_ptr<Session> session, const LogSink& log);
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;
  ~RedisStore() override;

  const StoreTraits& traits() const override;
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override;
  Answers release(std::span<const Claim> claims, LocalTime deadline) override;
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override;
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override;
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override;
  void check_mutex(std::string_view mutex) const override;
  void check_label(std::string_view label) const override;

 private:
  // Which items of a call go out in one request.
  struct Part {
    std::size_t from = 0, count = 1;
  };
  using Parts = std::vector<Part>;

  void check_fork() const;
  void perform(std::vector<Request>& requests, LocalTime deadline) const;
  void note_place(const Claim& claim, const Answer& answer,
                  const Subscriptions::Place& place) const;
  void give_back(std::span<const Claim> claims, std::vector<Request>& requests, const Parts& parts,
                 LocalTime began, LocalTime deadline, Answers& answers) const;
  std::set<std::string> scan(std::string_view prefix, std::string_view after, std::size_t limit,
                             LocalTime deadline) const;
  const std::string& where() const { return session_->courier->dialer().where(); }

  const kit::ThisProcess process_;
  std::shared_ptr<Session> session_;
  const std::shared_ptr<kit::SharedLog::Ticket> lines_;
  // That nobody has answered a giving back, until somebody does.
  mutable std::atomic<bool> said_unheard_{false};
};

}  // namespace simba::redis
