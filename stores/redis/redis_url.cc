#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "simba/redis.h"
#include "stores/kit/url.h"

namespace simba::inline v0 {
namespace {

using Topology = RedisOptions::Topology;

constexpr std::string_view kWhose = "redis URL";
constexpr std::array<std::string_view, 15> kKnown{"ca-file",
                                                  "cert-file",
                                                  "client-name",
                                                  "connect-timeout",
                                                  "database",
                                                  "key-file",
                                                  "password-file",
                                                  "queue",
                                                  "replicas",
                                                  "restart-guard",
                                                  "sentinel-password-file",
                                                  "sentinel-user",
                                                  "server-name",
                                                  "socket",
                                                  "user"};

struct Scheme {
  std::string_view name;
  Topology topology;
  RedisOptions::Transport transport;
};
constexpr std::array kSchemes{
    Scheme{"redis", Topology::kServer, RedisOptions::Transport::kPlain},
    Scheme{"rediss", Topology::kServer, RedisOptions::Transport::kTls},
    Scheme{"redis+sentinel", Topology::kSentinel, RedisOptions::Transport::kPlain},
    Scheme{"rediss+sentinel", Topology::kSentinel, RedisOptions::Transport::kTls},
    Scheme{"redis+cluster", Topology::kCluster, RedisOptions::Transport::kPlain},
    Scheme{"rediss+cluster", Topology::kCluster, RedisOptions::Transport::kTls},
};

std::string content(const std::string& name, const std::string& file) {
  std::ifstream in(file);
  if (!in) kit::refuse_url(kWhose, name + " names a file that cannot be read");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) kit::refuse_url(kWhose, name + " names an empty file");
  return text;
}

template <class Value>
Value one_of(std::string_view name, std::string_view value, std::string_view first,
             std::string_view second, Value of_first, Value of_second) {
  if (value == first) return of_first;
  if (value == second) return of_second;
  kit::refuse_url(kWhose,
                  std::string(name) + " is " + std::string(first) + " or " + std::string(second));
}

void set(RedisOptions& options, const std::string& name, const std::string& value) {
  using Queue = RedisOptions::Queue;
  using Guard = RedisOptions::RestartGuard;
  const auto number = [&](long least, long most) {
    return kit::parse_number(kWhose, name, value, least, most);
  };
  if (name == "ca-file") options.ca_file = value;
  if (name == "cert-file") options.cert_file = value;
  if (name == "key-file") options.key_file = value;
  if (name == "server-name") options.server_name = value;
  if (name == "client-name") options.client_name = value;
  if (name == "user") options.user = value;
  if (name == "socket") options.hosts = {value};
  if (name == "password-file") options.password = content(name, value);
  if (name == "sentinel-user") options.sentinel_user = value;
  if (name == "sentinel-password-file") options.sentinel_password = content(name, value);
  if (name == "database") options.database = static_cast<int>(number(0, 1'000'000));
  if (name == "connect-timeout") options.connect_timeout = milliseconds(number(1, 3'600'000));
  if (name == "replicas") options.replicas = static_cast<std::size_t>(number(0, 100));
  if (name == "queue") {
    options.queue = one_of(name, value, "shared", "own", Queue::kShared, Queue::kOwn);
  }
  if (name == "restart-guard") {
    options.restart_guard = one_of(name, value, "on", "off", Guard::kOn, Guard::kOff);
  }
}

void set_all(RedisOptions& options, std::string_view query) {
  for (const auto& [name, value] : kit::parse_query(kWhose, query)) {
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) {
      set(options, name, value);
      continue;
    }
    kit::refuse_parameter(kWhose, query, name, kKnown);
  }
}

// "user:password@host,host"
void set_authority(RedisOptions& options, std::string_view authority) {
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    const std::string_view who = authority.substr(0, at);
    const std::size_t colon = who.find(':');
    options.user = kit::percent_decoded(kWhose, who.substr(0, colon));
    if (colon != who.npos) options.password = kit::percent_decoded(kWhose, who.substr(colon + 1));
    authority.remove_prefix(at + 1);
  }
  if (authority.empty()) return;
  options.hosts.clear();
  while (true) {
    const std::string_view one = authority.substr(0, authority.find(','));
    options.hosts.push_back(kit::percent_decoded(kWhose, one));
    if (one.size() == authority.size()) return;
    authority.remove_prefix(one.size() + 1);
  }
}

// The database, the name of the master, or, without a host, the path of a socket.
void set_path(RedisOptions& options, std::string_view path, bool has_host) {
  if (path.empty() || path == "/") return;
  const std::string decoded = kit::percent_decoded(kWhose, path);
  if (!has_host) {
    options.hosts = {decoded};
  } else if (options.topology == Topology::kSentinel) {
    options.master = decoded.substr(1);
  } else {
    options.database = static_cast<int>(
        kit::parse_number(kWhose, "the database after the host", decoded.substr(1), 0, 1'000'000));
  }
}

}  // namespace

RedisOptions redis_options(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  const auto* const it = std::find_if(kSchemes.begin(), kSchemes.end(),
                                      [&](const Scheme& each) { return each.name == scheme; });
  if (it == kSchemes.end() || scheme.size() == url.size()) {
    kit::refuse_url(kWhose, "it begins with redis:, rediss:, redis+sentinel: or redis+cluster:");
  }
  RedisOptions options;
  options.topology = it->topology;
  options.transport = it->transport;
  std::string_view rest = url.substr(scheme.size() + 1);
  const std::size_t question = rest.find('?');
  const std::string_view query =
      question == rest.npos ? std::string_view{} : rest.substr(question + 1);
  rest = rest.substr(0, question);
  if (!rest.empty() && !rest.starts_with("//")) {
    kit::refuse_url(kWhose, "after the scheme comes //, as in redis://host:port/database");
  }
  if (!rest.empty()) rest.remove_prefix(2);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  set_authority(options, authority);
  const bool has_host = !authority.empty() && !authority.ends_with('@');
  set_path(options, rest.substr(authority.size()), has_host);
  set_all(options, query);
  return options;
}

}  // namespace simba::inline v0
