#include "stores/redis/dialer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "stores/redis/directions.h"
#include "stores/redis/failure.h"
#include "stores/redis/scripts.h"
#include "stores/redis/server_info.h"

namespace simba::redis {
namespace {

constexpr std::uint16_t kPort = 6379, kSentinelPort = 26379;
constexpr long kMostDatabases = 1'000'000;
constexpr std::size_t kMostReplicas = 100;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "redis: " + why);
}

// False: nobody logs in. A user without a password does: the server may want none.
bool add_credentials(Commands& commands, const std::string& user, const std::string& password) {
  if (user.empty() && password.empty()) return false;
  if (user.empty()) {
    commands.add({"AUTH", password});
  } else {
    commands.add({"AUTH", user, password});
  }
  return true;
}

void check_login(bool logs_in, const Replies& replies, const std::string& where) {
  if (logs_in && replies.front().is_error()) throw login_failure(replies.front(), where);
}

// With the address in front, and without the doubt: nothing of ours was asked yet.
Error cannot_open(const Address& address, const Error& error) {
  return {error.errc(), "redis at " + address.text() + ": " + error.what()};
}

}  // namespace

Dialer::Dialer(RedisOptions options) : options_(std::move(options)) {
  using Topology = RedisOptions::Topology;
  const bool sentinel = options_.topology == Topology::kSentinel;
  if (options_.hosts.empty()) refuse("no host is named");
  for (const std::string& host : options_.hosts) {
    hosts_.push_back(parse_address(host, sentinel ? kSentinelPort : kPort));
    where_ += (hosts_.size() > 1 ? "," : "") + hosts_.back().text();
  }
  if (!options_.master.empty()) where_ += '/' + options_.master;
  if (options_.topology == Topology::kServer && hosts_.size() > 1) {
    refuse(std::to_string(hosts_.size()) +
           " hosts are named, and one server is asked for; write redis+sentinel:// or "
           "redis+cluster://");
  }
  if (sentinel && options_.master.empty()) {
    refuse("the name of the master is missing; write redis+sentinel://host,host/NAME");
  }
  if (options_.database < 0 || options_.database > kMostDatabases) {
    refuse("database " + std::to_string(options_.database) + " cannot be; 0 to " +
           std::to_string(kMostDatabases));
  }
  if (is_cluster() && options_.database != 0) refuse("a cluster has database 0 alone");
  if (options_.cert_file.empty() != options_.key_file.empty()) {
    refuse("cert-file and key-file go together");
  }
  if (options_.replicas > kMostReplicas) {
    refuse(std::to_string(options_.replicas) + " replicas cannot be; 0 to " +
           std::to_string(kMostReplicas));
  }
  if (options_.connect_timeout <= milliseconds::zero()) refuse("connect-timeout is above 0 ms");
  if (options_.transport == RedisOptions::Transport::kTls) {
    for (const Address& host : hosts_) {
      if (!host.is_socket()) continue;
      refuse("TLS is not spoken on the UNIX socket '" + host.host +
             "'; write redis:///path, without it, or name a host");
    }
    tls_ = std::make_unique<TlsContext>(options_);
  }
}

void Dialer::log(LogLevel level, const std::string& line) const {
  if (options_.log) options_.log(level, line);
}

std::unique_ptr<Connection> Dialer::connect(const Address& address, LocalTime deadline,
                                            const kit::StopSignal& stop) const try {
  const int socket = connect_socket(address, deadline, stop);
  std::unique_ptr<Transport> transport;
  if (tls_) {
    transport = std::make_unique<TlsTransport>(socket, *tls_, address, deadline, stop);
  } else {
    transport = std::make_unique<Transport>(socket);
  }
  return std::make_unique<Connection>(std::move(transport), "redis at " + address.text());
} catch (const Error& error) {
  throw cannot_open(address, error);
}

std::unique_ptr<Connection> Dialer::open(const Address* address, Purpose purpose,
                                         const kit::StopSignal& stop) const {
  const LocalTime deadline = BootClock::now() + options_.connect_timeout;
  const bool sentinel = options_.topology == RedisOptions::Topology::kSentinel;
  if (address == nullptr && sentinel) return open_master(purpose, deadline, stop);
  return open_at(address == nullptr ? hosts_.front() : *address, purpose, deadline, stop);
}

std::unique_ptr<Connection> Dialer::open_at(const Address& address, Purpose purpose,
                                            LocalTime deadline, const kit::StopSignal& stop) const {
  auto connection = connect(address, deadline, stop);
  greet(*connection, purpose, deadline, stop);
  return connection;
}

// A sentinel that is cut off from the others may name a master that is dead or deposed: then the
// next one is asked. The one that was right is asked first the next time.
std::unique_ptr<Connection> Dialer::open_master(Purpose purpose, LocalTime deadline,
                                                const kit::StopSignal& stop) const {
  std::optional<Error> of_sentinels, of_master;
  std::optional<Address> unwelcome;
  const std::size_t first = first_sentinel_;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const std::size_t which = (first + i) % hosts_.size();
    Address master;
    try {
      master = ask_sentinel(hosts_[which], deadline, stop);
    } catch (const Error& error) {
      // One that knows no master says more than one that does not answer.
      if (!of_sentinels || of_sentinels->is_transient()) of_sentinels = error;
      continue;
    }
    if (unwelcome == master) continue;  // a wrong password is not tried again and again
    // What is silent leaves the others their share of the time.
    const LocalTime now = BootClock::now();
    const bool last = i + 1 == hosts_.size();
    try {
      auto connection =
          open_at(master, purpose, last ? deadline : now + (deadline - now) / 2, stop);
      first_sentinel_ = which;
      return connection;
    } catch (const Error& error) {
      if (!error.is_transient()) unwelcome = master;
      if (!of_master || of_master->is_transient()) of_master = error;
    }
  }
  if (of_master) throw Error(*of_master);
  throw Error(of_sentinels->errc(),
              "redis: no sentinel knows the master: " + std::string(of_sentinels->what()));
}

void Dialer::greet(Connection& connection, Purpose purpose, LocalTime deadline,
                   const kit::StopSignal& stop) const {
  const bool sentinel = options_.topology == RedisOptions::Topology::kSentinel;
  Commands commands;
  const bool logs_in = add_credentials(commands, options_.user, options_.password);
  if (options_.database != 0) {
    commands.add(Words().text("SELECT").number(options_.database));
  }
  if (sentinel) commands.add({"ROLE"});
  const std::size_t needed = commands.count();
  commands.add({"CLIENT", "SETNAME", options_.client_name});
  if (purpose == Purpose::kCommands) {
    for (const Script* script : {&acquire_script(), &guard_script(), &release_script()}) {
      commands.add({"SCRIPT", "LOAD", script->text});
    }
    commands.add({"INFO"}).add({"TIME"});
  }
  Replies replies = connection.run(commands, deadline, &stop);
  check_login(logs_in, replies, connection.where());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const bool matters = i < needed || replies[i].is_error("NOAUTH");
    if (matters && replies[i].is_error()) throw failure(replies[i], connection.where());
  }
  if (sentinel) {
    const Reply& role = replies[needed - 1];
    if (role.items.empty() || role.items[0].text != "master") {
      throw Error(Errc::kUnreachable,
                  connection.where() + ": the sentinels say it is the master, and it is not yet");
    }
  }
  if (purpose == Purpose::kCommands) {
    inspect(connection, replies[replies.size() - 2].text, replies.back());
  }
}

// What the server's settings mean for locks. `info` is an error's text where INFO is not allowed.
void Dialer::inspect(Connection& connection, const std::string& info, const Reply& time) const {
  const ServerInfo seen = read_info(info, time);
  ServerFacts& facts = connection.facts;
  facts.can_read_only_scripts = seen.version >= 70'000;
  if (seen.version == 0) {
    if (!warned_of_blindness_.exchange(true)) {
      log(LogLevel::kWarning,
          connection.where() +
              ": INFO is not allowed (+info): whether the server forgets or evicts keys is not "
              "known");
    }
    return;
  }
  if (seen.version < 60'200) {
    throw Error(Errc::kMisconfigured, connection.where() + ": version " +
                                          std::string(seen.version_text) +
                                          " is too old; 6.2 is the oldest that works");
  }
  facts.may_have_forgotten =
      !seen.persists && options_.restart_guard == RedisOptions::RestartGuard::kOn;
  facts.started = seen.started;
  facts.seen_up = BootClock::now();
  if (seen.evicts && !warned_of_eviction_.exchange(true)) {
    log(LogLevel::kWarning, connection.where() + ": maxmemory-policy " +
                                std::string(seen.eviction_policy) +
                                " may drop a lease while its owner works, and then there are two; "
                                "set maxmemory-policy noeviction, or give locks a server of their "
                                "own");
  }
}

Address Dialer::ask_sentinel(const Address& sentinel, LocalTime deadline,
                             const kit::StopSignal& stop) const {
  // The others want their share of the time.
  const LocalTime share = std::min(
      deadline, BootClock::now() + options_.connect_timeout / static_cast<int>(hosts_.size()));
  const auto connection = connect(sentinel, share, stop);
  Commands commands;
  const bool logs_in =
      add_credentials(commands, options_.sentinel_user, options_.sentinel_password);
  commands.add({"SENTINEL", "get-master-addr-by-name", options_.master});
  const Replies replies = connection->run(commands, share, &stop);
  check_login(logs_in, replies, "the sentinel at " + sentinel.text());
  for (const Reply& reply : replies) {
    if (reply.is_error()) throw sentinel_failure(reply, "the sentinel at " + sentinel.text());
  }
  if (const auto master = read_master(replies.back(), "the sentinel at " + sentinel.text())) {
    return *master;
  }
  throw Error(Errc::kMisconfigured,
              "the sentinel at " + sentinel.text() + " knows no master '" + options_.master + "'");
}

}  // namespace simba::redis
