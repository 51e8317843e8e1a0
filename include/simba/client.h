#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "simba/event.h"
#include "simba/executor.h"
#include "simba/export.h"
#include "simba/log.h"
#include "simba/options.h"
#include "simba/store.h"

namespace simba::core {
class Session;
}

namespace simba::inline v0 {

// Runs a task of yours on a thread of yours: tasks of one contender come one after the other. What
// it drops, or throws instead of taking, runs on a thread of ours.
using HandleExecutor = std::function<void(std::function<void()> task)>;

struct ClientOptions {
  ContendOptions contend;  // of every contender that does not bring its own
  EventHook on_event;
  LogSink log;
  // For callbacks of services, and that of acquire_async(); empty: threads of ours, as many as it
  // takes.
  HandleExecutor handle_executor;
  std::shared_ptr<Executor> executor;  // time and threads; empty: the real ones
};

// A store and the engine that contends on it: what everything else is made from.
//
// Threads: any. After a fork, every client and every handle made from it is dead in the child: it
// owns nothing and does no I/O. The connection is not tried here: trouble shows in the calls, and
// contention goes on by itself when it has passed.
class SIMBA_EXPORT Client {
 public:
  explicit Client(std::shared_ptr<Store> store, ClientOptions options = {});
  ~Client();
  // Copies speak of the same engine.
  Client(const Client&);
  Client& operator=(const Client&);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // For operators. These try once, within the deadline.
  Observation observe(std::string_view mutex, milliseconds timeout = milliseconds{5000});
  std::vector<Listed> list(std::string_view prefix = {}, std::size_t limit = 1000,
                           milliseconds timeout = milliseconds{5000});
  // The next page: `after` is the last name of the one before. One that is not full is the last.
  std::vector<Listed> list_after(std::string_view after, std::string_view prefix = {},
                                 std::size_t limit = 1000,
                                 milliseconds timeout = milliseconds{5000});
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token,
                    Eviction how = Eviction::kKeepLease, milliseconds timeout = milliseconds{5000});
  // The same with an error code instead of an exception; what they return is empty then.
  Observation observe(std::string_view mutex, milliseconds timeout, std::error_code& error);
  std::vector<Listed> list(std::string_view prefix, std::size_t limit, milliseconds timeout,
                           std::error_code& error);
  std::vector<Listed> list_after(std::string_view after, std::string_view prefix, std::size_t limit,
                                 milliseconds timeout, std::error_code& error);
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    milliseconds timeout, std::error_code& error);

  const ClientOptions& options() const;
  Store& store();

  // Handles keep this alive, also when the client itself is gone.
  const std::shared_ptr<core::Session>& session() const { return session_; }

 private:
  std::shared_ptr<core::Session> session_;
};

}  // namespace simba::inline v0
