#pragma once

#include <mongoc/mongoc.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "simba/error.h"
#include "simba/mongodb.h"
#include "simba/time.h"
#include "stores/kit/this_process.h"
#include "stores/mongodb/transport.h"

namespace simba::mongodb {

// Throws Error (kMisconfigured) for what can be seen to be wrong without asking anybody. Never
// repeats a value.
void check_options(const MongodbOptions& options);

// The servers that one store speaks to: the driver's pool of clients, and whether a primary is
// known. The driver waits for one without a deadline of the call's; this waits with it.
//
// Threads: any.
class Endpoint {
 public:
  // Throws Error (kMisconfigured). Never repeats a value. Closing takes the driver's monitors half
  // a second: a thread of its own waits for that, and the end of the process for the thread.
  static std::shared_ptr<Endpoint> make(const MongodbOptions& options);

  explicit Endpoint(const MongodbOptions& options);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  const MongodbOptions& options() const { return options_; }
  const std::string& where() const { return where_; }  // "host:port/database.collection"
  const std::string& identity() const { return identity_; }
  bool is_users() const { return options_.pool != nullptr; }  // the pool

  // A client for one thread. Null: the user's pool has none left.
  mongoc_client_t* pop();
  void push(mongoc_client_t* client);
  Limit& limit_of(mongoc_client_t* client);
  // Until all are back that a user's pool gave; no longer than kReturn. In a forked child at once.
  void await_return();

  // Throws Error where none is known by then, or where none of the set's members can be reached;
  // kMisconfigured where none of them will ever do.
  void await_primary(const Limit& limit);
  void log(LogLevel level, const std::string& line) const;

  // The server's clock as the last answer tells it; nothing before the first one.
  void note_time(StoreTime now);
  std::optional<StoreTime> estimated_time() const;

 private:
  static constexpr std::chrono::seconds kReturn{10};

  void read_uri();
  void watch_servers();
  void watch_members(mongoc_apm_callbacks_t* callbacks);
  void heard_of(const mongoc_host_list_t* host, std::optional<Error> trouble);
  bool all_failed() const;         // needs guard_
  [[noreturn]] void fail() const;  // likewise

  const MongodbOptions options_;
  const kit::ThisProcess process_;
  std::string where_, identity_;
  std::unique_ptr<mongoc_uri_t, void (*)(mongoc_uri_t*)> uri_;
  mongoc_client_pool_t* pool_ = nullptr;

  mutable std::mutex guard_;
  // Guarded by guard_:
  std::condition_variable changed_;
  bool has_primary_ = false;
  std::size_t borrowed_ = 0;  // clients
  // Hosts that the driver asks, with what is wrong with them.
  std::map<std::string, std::optional<Error>> members_;
  std::map<mongoc_client_t*, std::unique_ptr<Limit>> limits_;
  std::optional<std::pair<StoreTime, LocalTime>> time_;
};

}  // namespace simba::mongodb
