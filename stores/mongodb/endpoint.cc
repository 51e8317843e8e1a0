#include "stores/mongodb/endpoint.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "simba/error.h"
#include "stores/kit/signals_blocked.h"
#include "stores/kit/this_process.h"
#include "stores/mongodb/failure.h"

namespace simba::mongodb {
namespace {

constexpr std::size_t kSpare = 4;               // clients beside those of the calls
constexpr std::int32_t kSelection = 1'000;      // milliseconds
constexpr std::int32_t kMonitor = 1'000;        // likewise
constexpr std::chrono::milliseconds kLook{50};  // between looks at the stop

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "mongodb: " + why);
}

// What MongoDB and we can live with; nothing that would have to be quoted.
void check_name(const char* what, const std::string& name, std::size_t most) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  const bool dots = std::string_view(what) == "collection";
  const bool fits = std::all_of(name.begin(), name.end(),
                                [&](char c) { return is_good(c) || (dots && c == '.'); });
  if (!name.empty() && name.size() <= most && fits && !name.starts_with("system.") &&
      name.front() != '.') {
    return;
  }
  refuse(std::string("the ") + what + " has 1 to " + std::to_string(most) +
         " letters, digits, '_' or '-'" +
         (dots ? " or '.', and does not begin with 'system.'" : ""));
}

void start_driver() {
  static const bool started = [] {
    mongoc_init();
    return true;
  }();
  static_cast<void>(started);
}

// By default it writes to the terminal; what it has to say comes in errors too.
void silence_driver() {
  static const bool silenced = [] {
    mongoc_log_set_handler([](mongoc_log_level_t, const char*, const char*, void*) {}, nullptr);
    return true;
  }();
  static_cast<void>(silenced);
}

// Those that are being closed. Never destroyed: a store in a static variable may come late.
struct Closing {
  static Closing& all() {
    static auto* const one = new Closing;
    return *one;
  }
  // Before the libraries beneath clean up.
  Closing() {
    std::atexit([] { all().wait(); });
  }

  void begin() {
    const std::lock_guard lock(guard);
    ++count;
  }
  void end() {
    const std::lock_guard lock(guard);
    --count;
    ended.notify_all();
  }
  void wait() {
    if (!process.is_still()) return;  // its threads are not here
    std::unique_lock lock(guard);
    ended.wait_for(lock, std::chrono::seconds(3), [&] { return count == 0; });
  }

  const kit::ThisProcess process;
  std::mutex guard;
  std::condition_variable ended;
  std::size_t count = 0;  // guarded by guard
};

void close_elsewhere(Endpoint* endpoint) noexcept {
  Closing::all().begin();
  try {
    const kit::SignalsBlocked blocked;
    std::thread([endpoint] {
      delete endpoint;
      Closing::all().end();
    }).detach();
  } catch (const std::system_error&) {
    delete endpoint;
    Closing::all().end();
  }
}

using Uri = std::unique_ptr<mongoc_uri_t, void (*)(mongoc_uri_t*)>;

Uri parse_uri(const std::string& text) {
  bson_error_t error{};
  Uri uri(mongoc_uri_new_with_error(text.c_str(), &error), mongoc_uri_destroy);
  // The driver's text may repeat a part of the URI.
  if (!uri) refuse("the URI is not one: mongodb://user@host:port,host:port/?replicaSet=NAME");
  return uri;
}

// The driver finds no primary in a set with a server that it is too new for, and does not say why.
std::optional<Error> trouble_in(const bson_t* hello, const std::string& where) try {
  check_version(hello, where);
  return std::nullopt;
} catch (const Error& error) {
  return error;
}

Error trouble_of(const bson_error_t& error, const std::string& where) {
  if (is_unproven(error.message)) {
    return {Errc::kMisconfigured, unproven(error.message, where).what()};
  }
  return {Errc::kUnreachable, *error.message != 0 ? error.message : "no reason given"};
}

}  // namespace

void check_options(const MongodbOptions& options) {
  check_name("database", options.database, 63);
  check_name("collection", options.collection, 200);
  if (options.connections < 2 || options.connections > 1'000) {
    refuse("connections is " + std::to_string(options.connections) +
           "; it must be between 2 and 1000");
  }
  const bool is_ours = options.pool == nullptr;
  if (is_ours) silence_driver();  // it may write as soon as it starts
  start_driver();
  if (is_ours) static_cast<void>(parse_uri(options.uri));
}

std::shared_ptr<Endpoint> Endpoint::make(const MongodbOptions& options) {
  Closing::all();
  return {new Endpoint(options), close_elsewhere};
}

Endpoint::Endpoint(const MongodbOptions& options)
    : options_(options), uri_(nullptr, mongoc_uri_destroy) {
  check_options(options_);
  if (is_users()) {
    pool_ = options_.pool;
    where_ = "the pool given/" + options_.database + '.' + options_.collection;
    return;
  }
  read_uri();
  pool_ = mongoc_client_pool_new_with_error(uri_.get(), nullptr);
  if (pool_ == nullptr) refuse("the driver refuses the URI: its TLS or DNS part cannot be used");
  mongoc_client_pool_set_error_api(pool_, MONGOC_ERROR_API_VERSION_2);
  watch_servers();
}

Endpoint::~Endpoint() {
  if (!is_users() && pool_ != nullptr) mongoc_client_pool_destroy(pool_);
}

void Endpoint::read_uri() {
  uri_ = parse_uri(options_.uri);
  mongoc_uri_t* const uri = uri_.get();
  // A call tries once, within its deadline: who repeats it is the engine.
  mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, false);
  mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYREADS, false);
  // A primary that is lost between our look and the driver's costs a call so much, past its
  // deadline.
  mongoc_uri_set_option_as_int32(
      uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS,
      std::min(kSelection, mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS,
                                                          kSelection)));
  // After an error the driver forgets the primary until its monitor has looked again.
  if (!mongoc_uri_has_option(uri, MONGOC_URI_HEARTBEATFREQUENCYMS)) {
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_HEARTBEATFREQUENCYMS, kMonitor);
  }
  mongoc_uri_set_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE,
                                 static_cast<std::int32_t>(options_.connections + kSpare));
  if (mongoc_uri_get_appname(uri) == nullptr) mongoc_uri_set_appname(uri, "simba");
  for (const mongoc_host_list_t* host = mongoc_uri_get_hosts(uri); host; host = host->next) {
    where_ += (where_.empty() ? "" : ",") + std::string(host->host_and_port);
  }
  if (const char* service = mongoc_uri_get_srv_hostname(uri)) where_ = service;
  where_ += '/' + options_.database + '.' + options_.collection;
  identity_ = std::string(mongoc_uri_get_string(uri)) + '\n' + options_.database + '\n' +
              options_.collection;
}

// The driver's monitors tell what they see.
void Endpoint::watch_servers() {
  mongoc_apm_callbacks_t* callbacks = mongoc_apm_callbacks_new();
  mongoc_apm_set_topology_changed_cb(callbacks, [](const mongoc_apm_topology_changed_t* event) {
    auto& self = *static_cast<Endpoint*>(mongoc_apm_topology_changed_get_context(event));
    const bool writable = mongoc_topology_description_has_writable_server(
        const_cast<
            mongoc_topology_description_t*>(  // NOLINT(cppcoreguidelines-pro-type-const-cast)
            mongoc_apm_topology_changed_get_new_description(event)));
    const std::lock_guard lock(self.guard_);
    self.has_primary_ = writable;
    self.changed_.notify_all();
  });
  watch_members(callbacks);
  mongoc_client_pool_set_apm_callbacks(pool_, callbacks, this);
  mongoc_apm_callbacks_destroy(callbacks);
}

// Those that the URI names, and then those that the set has.
void Endpoint::watch_members(mongoc_apm_callbacks_t* callbacks) {
  mongoc_apm_set_server_opening_cb(callbacks, [](const mongoc_apm_server_opening_t* event) {
    auto& self = *static_cast<Endpoint*>(mongoc_apm_server_opening_get_context(event));
    const std::lock_guard lock(self.guard_);
    self.members_.try_emplace(mongoc_apm_server_opening_get_host(event)->host_and_port);
  });
  mongoc_apm_set_server_closed_cb(callbacks, [](const mongoc_apm_server_closed_t* event) {
    auto& self = *static_cast<Endpoint*>(mongoc_apm_server_closed_get_context(event));
    const std::lock_guard lock(self.guard_);
    self.members_.erase(mongoc_apm_server_closed_get_host(event)->host_and_port);
  });
  mongoc_apm_set_server_heartbeat_succeeded_cb(
      callbacks, [](const mongoc_apm_server_heartbeat_succeeded_t* event) {
        const mongoc_host_list_t* host = mongoc_apm_server_heartbeat_succeeded_get_host(event);
        static_cast<Endpoint*>(mongoc_apm_server_heartbeat_succeeded_get_context(event))
            ->heard_of(host, trouble_in(mongoc_apm_server_heartbeat_succeeded_get_reply(event),
                                        host->host_and_port));
      });
  mongoc_apm_set_server_heartbeat_failed_cb(
      callbacks, [](const mongoc_apm_server_heartbeat_failed_t* event) {
        const mongoc_host_list_t* host = mongoc_apm_server_heartbeat_failed_get_host(event);
        bson_error_t error{};
        mongoc_apm_server_heartbeat_failed_get_error(event, &error);
        static_cast<Endpoint*>(mongoc_apm_server_heartbeat_failed_get_context(event))
            ->heard_of(host, trouble_of(error, host->host_and_port));
      });
}

void Endpoint::heard_of(const mongoc_host_list_t* host, std::optional<Error> trouble) {
  const std::lock_guard lock(guard_);
  const auto it = members_.find(host->host_and_port);
  if (it != members_.end()) it->second = std::move(trouble);  // else it is none any more
  changed_.notify_all();
}

bool Endpoint::all_failed() const {
  return !members_.empty() && std::all_of(members_.begin(), members_.end(),
                                          [](const auto& each) { return each.second.has_value(); });
}

void Endpoint::fail() const {
  const bool can_wait =
      !all_failed() || std::any_of(members_.begin(), members_.end(),
                                   [](const auto& each) { return each.second->is_transient(); });
  if (!can_wait) throw Error(*members_.begin()->second);
  std::string why;
  for (const auto& [host, trouble] : members_) {
    if (trouble) why += (why.empty() ? " (" : "; ") + std::string(trouble->what());
  }
  throw Error(Errc::kUnreachable,
              "mongodb at " + where_ + ": no primary is known" + why + (why.empty() ? "" : ")"));
}

mongoc_client_t* Endpoint::pop() {
  mongoc_client_t* client = mongoc_client_pool_try_pop(pool_);
  if (client == nullptr) return nullptr;
  if (!is_users()) use_limited_sockets(client, limit_of(client));
  const std::lock_guard lock(guard_);
  ++borrowed_;
  return client;
}

void Endpoint::push(mongoc_client_t* client) {
  mongoc_client_pool_push(pool_, client);
  const std::lock_guard lock(guard_);
  --borrowed_;
  changed_.notify_all();
}

// A thread that hangs in the network is left to itself sooner or later; the pool is not ours.
void Endpoint::await_return() {
  if (!is_users() || !process_.is_still()) return;
  std::unique_lock lock(guard_);
  if (changed_.wait_for(lock, kReturn, [&] { return borrowed_ == 0; })) return;
  lock.unlock();
  log(LogLevel::kError, "mongodb at " + where_ +
                            ": a client hangs in the network and is not back: keep the pool for "
                            "as long as its socketTimeoutMS and serverSelectionTimeoutMS say");
}

Limit& Endpoint::limit_of(mongoc_client_t* client) {
  const std::lock_guard lock(guard_);
  std::unique_ptr<Limit>& limit = limits_[client];
  if (!limit) limit = std::make_unique<Limit>();
  return *limit;
}

void Endpoint::await_primary(const Limit& limit) {
  if (is_users()) return;
  std::unique_lock lock(guard_);
  while (!has_primary_) {
    const LocalTime now = BootClock::now();
    const bool stopped = limit.stop != nullptr && limit.stop->is_requested();
    if (now < limit.deadline && !stopped && !all_failed()) {
      changed_.wait_for(lock, std::min<nanoseconds>(kLook, limit.deadline - now));
      continue;
    }
    fail();
  }
}

void Endpoint::log(LogLevel level, const std::string& line) const {
  if (options_.log) options_.log(level, line);
}

void Endpoint::note_time(StoreTime now) {
  const std::lock_guard lock(guard_);
  time_.emplace(now, BootClock::now());
}

std::optional<StoreTime> Endpoint::estimated_time() const {
  const std::lock_guard lock(guard_);
  if (!time_) return std::nullopt;
  return time_->first + std::chrono::floor<milliseconds>(BootClock::now() - time_->second);
}

}  // namespace simba::mongodb
