#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "simba/zookeeper.h"
#include "stores/kit/url.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/zookeeper_options.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kWhose = "zookeeper URL";
constexpr std::string_view kScheme = "zookeeper:";
constexpr std::array<std::string_view, 9> kNames{"session-timeout", "tick", "base",   "acl",
                                                 "password-file",   "tls",  "tls-ca", "tls-cert",
                                                 "tls-key"};
constexpr std::array<std::string_view, 4> kAcls{"automatic", "open", "creator-read", "creator"};

std::string read_password(const std::string& file) {
  std::ifstream in(file);
  if (!in) kit::refuse_url(kWhose, "the password-file cannot be read");
  std::string password(std::istreambuf_iterator<char>(in), {});
  while (!password.empty() && (password.back() == '\n' || password.back() == '\r')) {
    password.pop_back();
  }
  if (password.empty()) kit::refuse_url(kWhose, "the password-file is empty");
  return password;
}

void set_tls(ZookeeperOptions& options, const std::string& name, const std::string& value) {
  zookeeper::need_tls(name);
  if (name == "tls" && value != "without-host-name") {
    kit::refuse_url(
        kWhose,
        "tls is without-host-name: ZooKeeper's client library looks whether an authority "
        "signed the server's certificate, and not for which host");
  }
  if (name == "tls-ca") options.tls_ca = value;
  if (name == "tls-cert") options.tls_certificate = value;
  if (name == "tls-key") options.tls_key = value;
}

void set(ZookeeperOptions& options, std::string_view query, const std::string& name,
         const std::string& value) {
  constexpr long kDay = 86'400'000;
  if (name == "session-timeout") {
    options.session_timeout = milliseconds{kit::parse_number(kWhose, name, value, 100, kDay)};
  } else if (name == "tick") {
    options.tick = milliseconds{kit::parse_number(kWhose, name, value, 10, kDay)};
  } else if (name == "base") {
    options.base = value;
  } else if (name == "password-file") {
    options.password = read_password(value);
  } else if (name == "acl") {
    const auto* const it = std::find(kAcls.begin(), kAcls.end(), value);
    if (it == kAcls.end()) kit::refuse_url(kWhose, "acl is open, creator-read or creator");
    options.acl = static_cast<ZookeeperOptions::Acl>(it - kAcls.begin());
  } else if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) {
    set_tls(options, name, value);
  } else {
    kit::refuse_parameter(kWhose, query, name, kNames);
  }
}

void set_credentials(ZookeeperOptions& options, std::string_view credentials) {
  const std::size_t colon = credentials.find(':');
  options.user = kit::percent_decoded(kWhose, credentials.substr(0, colon));
  if (options.user.empty() || options.user.find(':') != std::string::npos) {
    kit::refuse_url(kWhose, "the user before '@' is empty or holds a ':'");
  }
  if (colon != credentials.npos) {
    options.password = kit::percent_decoded(kWhose, credentials.substr(colon + 1));
  }
}

// Files without the word that says what they are worth, or the word without them.
void check_tls(const ZookeeperOptions& options, const kit::Query& parameters) {
  const bool is_named = std::any_of(parameters.begin(), parameters.end(),
                                    [](const auto& each) { return each.first == "tls"; });
  const bool has_files = !(options.tls_ca + options.tls_certificate + options.tls_key).empty();
  if (is_named == has_files) return;
  kit::refuse_url(kWhose, "TLS needs tls=without-host-name, tls-ca, tls-cert and tls-key");
}

std::string with_port(std::string_view server) {
  const std::size_t colon = server.rfind(':');
  const bool is_ipv6 = server.starts_with('[') && server.ends_with(']');
  if (colon == server.npos || is_ipv6) return std::string(server) + ":2181";
  kit::parse_number(kWhose, "a port", server.substr(colon + 1), 1, 65'535);
  return std::string(server);
}

std::string servers_of(std::string_view list) {
  std::string servers;
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    if (one.empty()) kit::refuse_url(kWhose, "a server between two commas has no name");
    servers += (servers.empty() ? "" : ",") + with_port(one);
  }
  return servers;
}

}  // namespace

ZookeeperOptions zookeeper_options(std::string_view url) {
  if (!url.starts_with(kScheme)) kit::refuse_url(kWhose, "it begins with zookeeper:");
  std::string_view rest = url.substr(kScheme.size());
  if (rest.find('#') != rest.npos) {
    kit::refuse_url(kWhose, "'#' begins a fragment, which has no meaning here; write %23");
  }
  ZookeeperOptions options;
  const std::size_t question = rest.find('?');
  const std::string_view query = question == rest.npos ? "" : rest.substr(question + 1);
  const kit::Query parameters = kit::parse_query(kWhose, query);
  rest = rest.substr(0, question);
  if (rest.starts_with("//")) rest.remove_prefix(2);
  const std::size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != rest.npos) options.chroot = kit::percent_decoded(kWhose, rest.substr(slash));
  while (options.chroot.ends_with('/')) options.chroot.pop_back();
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    set_credentials(options, authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  if (!authority.empty()) options.servers = servers_of(authority);
  for (const auto& [name, value] : parameters) set(options, query, name, value);
  check_tls(options, parameters);
  zookeeper::check_options(options);
  return options;
}

}  // namespace simba::inline v0
