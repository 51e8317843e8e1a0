#include "torture/target.h"

#include <array>
#include <charconv>
#include <string_view>

namespace simba::torture {
namespace {

struct Scheme {
  std::string_view name;
  std::uint16_t port;
  const char* query;  // what keeps the driver from going elsewhere
  const char* plain;  // what must be there, or it is TLS
};
constexpr std::array kSchemes{
    Scheme{"mongodb", 27017, "directConnection=true", ""},
    Scheme{"mysql", 3306, "", "sslmode=disable"},
    Scheme{"mariadb", 3306, "", "sslmode=disable"},
    Scheme{"postgresql", 5432, "", "sslmode=disable"},
    Scheme{"redis", 6379, "", ""},
    Scheme{"zookeeper", 2181, "", ""},
};

const Scheme* find_scheme(std::string_view url) {
  for (const Scheme& scheme : kSchemes) {
    if (url.starts_with(std::string(scheme.name) + "://")) return &scheme;
  }
  return nullptr;
}

// A certificate is for the server's own name, and not for a relay's.
bool speaks_tls(const Scheme& scheme, std::string_view url) {
  const std::string_view query = url.substr(std::min(url.find('?'), url.size()));
  if (*scheme.plain != '\0') return query.find(scheme.plain) == query.npos;
  return query.find("tls") != query.npos || query.find("ssl") != query.npos;
}

struct Place {
  std::string before, host, after;
  std::uint16_t port = 0;
};

// The one host of a URL; none: several, a socket, or no port that is one.
std::optional<Place> find_place(const std::string& url, std::uint16_t standard) {
  const std::size_t begin = url.find("://") + 3;
  const std::size_t end = std::min(url.find_first_of("/?", begin), url.size());
  const std::size_t at = url.rfind('@', end);
  const std::size_t from = at != url.npos && at >= begin ? at + 1 : begin;
  const std::string_view place = std::string_view(url).substr(from, end - from);
  if (place.empty() || place.find_first_of(",[]%") != place.npos) return std::nullopt;
  const std::size_t colon = place.find(':');
  std::uint16_t port = standard;
  if (colon != place.npos) {
    const std::string_view digits = place.substr(colon + 1);
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc{} || last != digits.data() + digits.size()) return std::nullopt;
  }
  return Place{url.substr(0, from), std::string(place.substr(0, colon)), url.substr(end), port};
}

std::string with_query(std::string url, std::string_view more) {
  if (more.empty() || url.find(more) != url.npos) return url;
  if (url.find('?') != url.npos) return url + '&' + std::string(more);
  const bool has_path = url.find('/', url.find("://") + 3) != url.npos;
  return url + (has_path ? "?" : "/?") + std::string(more);
}

// Whether a URL leads to several servers, of which one may know less than another.
bool names_several(std::string_view url) {
  const std::string_view hosts = url.substr(0, std::min(url.find('?'), url.size()));
  return hosts.find(',') != hosts.npos || url.find("+srv://") != url.npos ||
         url.find("replicaSet=") != url.npos;
}

StoreRules rules_of(std::string_view url) {
  StoreRules rules;
  const bool is_sql = url.starts_with("mysql://") || url.starts_with("mariadb://");
  const bool is_postgres = url.starts_with("postgresql://") || url.starts_with("postgres://");
  const bool is_redis = url.starts_with("redis://") || url.starts_with("rediss://");
  rules.may_forget_release = is_postgres;
  rules.denies_while_it_only_reads = is_redis || ((is_sql || is_postgres) && !names_several(url));
  if (url.starts_with("zookeeper://")) {
    rules.queues = true;
    rules.old_question = rules.old_refusal = kOldestRead;  // one address may be of an ensemble
  }
  if (url.starts_with("mongodb") && names_several(url)) {
    rules.old_question = kOldestRead;
    rules.is_old_after_failover_only = true;
  }
  if (is_sql && names_several(url)) rules.old_question = rules.old_refusal = kOldestRead;
  return rules;
}

}  // namespace

Target target_of(const std::string& url) {
  Target target;
  target.url = url;
  target.rules = rules_of(url);
  if (url.starts_with("sqlite:")) {
    target.spared = {"server, network and clock: there are none"};
    return target;
  }
  target.spared = {"the server: it is not ours to kill, nor is its clock"};
  const Scheme* scheme = find_scheme(url);
  const auto place = scheme != nullptr ? find_place(url, scheme->port) : std::nullopt;
  if (!place || speaks_tls(*scheme, url)) {
    target.spared.emplace_back(
        "the network: a relay goes between only where the URL names one host, without TLS");
    return target;
  }
  target.network = Target::Network{
      place->host, place->port, [place = *place, scheme](std::uint16_t port) {
        return with_query(place.before + "127.0.0.1:" + std::to_string(port) + place.after,
                          scheme->query);
      }};
  return target;
}

}  // namespace simba::torture
