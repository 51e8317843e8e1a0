#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "simba/postgres.h"
#include "stores/kit/url.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kWhose = "postgresql URL";
constexpr std::array<std::string_view, 3> kOurs{"table", "pooler", "connections"};
constexpr std::array<std::string_view, 3> kPoolers{"detect", "none", "transaction"};

using Pooler = PostgresOptions::Pooler;

// Ours, and libpq's.
std::vector<std::string_view> known_names(const PQconninfoOption* libpq) {
  std::vector<std::string_view> names(kOurs.begin(), kOurs.end());
  for (; libpq != nullptr && libpq->keyword != nullptr; ++libpq) names.emplace_back(libpq->keyword);
  return names;
}

void check_names(const kit::Query& names, std::string_view query) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> libpq(PQconndefaults(),
                                                                             PQconninfoFree);
  const std::vector<std::string_view> known = known_names(libpq.get());
  for (const auto& [name, value] : names) {
    // What is wrong with the latter is said where a connection string is read.
    if (std::find(known.begin(), known.end(), name) != known.end() || name == "ssl") continue;
    kit::refuse_parameter(kWhose, query, name, known);
  }
}

Pooler pooler_of(const std::string& value) {
  const auto* const it = std::find(kPoolers.begin(), kPoolers.end(), value);
  if (it == kPoolers.end()) {
    kit::refuse_url(kWhose, "pooler is detect, none or transaction");
  }
  return static_cast<Pooler>(it - kPoolers.begin());
}

void set(PostgresOptions& options, const std::string& name, const std::string& value) {
  if (name == "table") options.table = value;
  if (name == "pooler") options.pooler = pooler_of(value);
  if (name == "connections") {
    options.connections =
        static_cast<std::size_t>(kit::parse_number(kWhose, name, value, 2, 1'000));
  }
}

}  // namespace

PostgresOptions postgres_options(std::string_view url) {
  if (!url.starts_with("postgresql:") && !url.starts_with("postgres:")) {
    kit::refuse_url(kWhose, "it begins with postgresql:");
  }
  PostgresOptions options;
  const std::size_t question = url.find('?');
  options.conninfo = url.substr(0, question);
  // `postgresql:` alone is all of libpq's defaults.
  if (options.conninfo.back() == ':') options.conninfo += "//";
  if (question == url.npos) return options;
  const std::string_view query = url.substr(question + 1);
  const kit::Query names = kit::parse_query(kWhose, query);
  check_names(names, query);
  std::string_view rest = query;
  char separator = '?';
  for (const auto& [name, value] : names) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end()) {
      set(options, name, value);
    } else {
      options.conninfo += std::exchange(separator, '&') + std::string(one);
    }
  }
  return options;
}

}  // namespace simba::inline v0
