#include "stores/postgres/endpoint.h"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "stores/kit/url.h"

namespace simba::postgres {
namespace {

constexpr std::size_t kLongestChannel = 63;  // the table's name is the channel's too

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "postgres: " + why);
}

bool is_identifier(std::string_view word) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !word.empty() && is_letter(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string quoted(const std::string& table) {
  const std::size_t dot = table.find('.');
  const std::string_view all = table;
  const bool fits = dot == table.npos
                        ? is_identifier(all)
                        : is_identifier(all.substr(0, dot)) && is_identifier(all.substr(dot + 1));
  if (!fits || table.size() > kLongestChannel) {
    refuse("the table is a name, or schema.name, of letters, digits and '_', with at most " +
           std::to_string(kLongestChannel) + " characters");
  }
  if (dot == table.npos) return '"' + table + '"';
  return '"' + table.substr(0, dot) + "\".\"" + table.substr(dot + 1) + '"';
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list)
    c == ',' ? static_cast<void>(out.emplace_back()) : out.back().push_back(c);
  return out;
}

// In a URL libpq reads ssl=true as sslmode=require, which encrypts and verifies nobody.
void refuse_ssl(std::string_view conninfo) {
  if (!conninfo.starts_with("postgresql://") && !conninfo.starts_with("postgres://")) return;
  constexpr const char* kBefore = "?&";
  for (std::size_t at = conninfo.find_first_of(kBefore); at != conninfo.npos;
       at = conninfo.find_first_of(kBefore, at + 1)) {
    const std::string_view rest = conninfo.substr(at + 1);
    if (kit::percent_decoded("postgres", rest.substr(0, rest.find('='))) != "ssl") continue;
    refuse(
        "ssl=true would encrypt without a look at who answers; leave it out and everything is "
        "verified (sslmode=verify-full), or write the sslmode that you want");
  }
}

// What the conninfo says, and what we want where it says nothing.
std::map<std::string, std::string> parse(const std::string& conninfo) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(conninfo.c_str(), &error), PQconninfoFree);
  if (!parsed) {
    PQfreemem(error);  // it may hold a part of a password
    refuse(
        "libpq does not understand the connection string; write "
        "postgresql://user@host:port/database?name=value, with %XX for odd characters");
  }
  refuse_ssl(conninfo);
  std::map<std::string, std::string> found;
  for (const PQconninfoOption* each = parsed.get(); each->keyword != nullptr; ++each) {
    if (each->val != nullptr) found[each->keyword] = each->val;
  }
  return found;
}

// Which servers the environment (or the service that it names) speaks of: libpq would take all of
// them for each of ours.
void add_hosts(std::map<std::string, std::string>& keywords) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> defaults(PQconndefaults(),
                                                                                PQconninfoFree);
  for (const PQconninfoOption* each = defaults.get(); each && each->keyword; ++each) {
    const std::string_view name = each->keyword;
    if (!each->val || (name != "host" && name != "hostaddr" && name != "port")) continue;
    const bool is_built_in = each->compiled && std::string_view(each->val) == each->compiled;
    if (!is_built_in) keywords.try_emplace(each->keyword, each->val);
  }
}

void add_defaults(std::map<std::string, std::string>& keywords) {
  add_hosts(keywords);
  // The environment does not weaken it: a value given here counts more.
  keywords.try_emplace("sslmode", "verify-full");
  keywords.try_emplace("gssencmode", "disable");
  keywords.try_emplace("fallback_application_name", "simba");
  // A server that is gone without a word is noticed.
  keywords.try_emplace("keepalives_idle", "10");
  keywords.try_emplace("keepalives_interval", "5");
  keywords.try_emplace("keepalives_count", "3");
  keywords.try_emplace("tcp_user_timeout", "20000");
  if ((keywords["host"] + keywords["hostaddr"]).find(',') != std::string::npos) {
    keywords.try_emplace("target_session_attrs", "read-write");
  }
  keywords["client_encoding"] = "UTF8";
}

}  // namespace

Endpoint::Endpoint(const PostgresOptions& options)
    : options_(options),
      quoted_table_(quoted(options.table)),
      behind_pooler_(options.pooler == PostgresOptions::Pooler::kTransaction) {
  if (options.connections < 2 || options.connections > 1'000) {
    refuse(std::to_string(options.connections) +
           " connections cannot be: one is kept for renewals, so 2 to 1000");
  }
  if (options_.connector) {
    where_ = "the given connection";
  } else {
    read_conninfo();
  }
  if (behind_pooler_) {
    log(LogLevel::kWarning, "postgres at " + where_ +
                                ": told that a transaction pooler is in between: statements are "
                                "unnamed, and waiters poll instead of being woken");
  }
}

void Endpoint::read_conninfo() {
  std::map<std::string, std::string> keywords = parse(options_.conninfo);
  add_defaults(keywords);
  if (const auto it = keywords.find("connect_timeout"); it != keywords.end()) {
    connect_timeout_ = std::chrono::seconds(
        kit::parse_number("postgres", "connect_timeout", it->second, 1, 3'600));
  }
  const std::vector<std::string> hosts = split(keywords["host"]), ports = split(keywords["port"]),
                                 addresses = split(keywords["hostaddr"]);
  const std::size_t count = std::max(hosts.size(), addresses.size());
  if ((ports.size() != 1 && ports.size() != count) ||
      (addresses.size() != 1 && addresses.size() != count)) {
    refuse("the connection string names " + std::to_string(count) + " hosts and " +
           std::to_string(ports.size()) + " ports");
  }
  for (const std::string& port : ports) {  // libpq says it only when it connects
    if (!port.empty()) kit::parse_number("postgres", "a port", port, 1, 65'535);
  }
  const auto nth = [](const std::vector<std::string>& list, std::size_t i) {
    return list[std::min(i, list.size() - 1)];
  };
  for (std::size_t i = 0; i < count; ++i) {
    keywords["host"] = hosts.size() == 1 && count > 1 ? hosts[0] : nth(hosts, i);
    keywords["port"] = nth(ports, i);
    keywords["hostaddr"] = nth(addresses, i);
    candidates_.emplace_back(keywords.begin(), keywords.end());
    where_ +=
        (i > 0 ? "," : "") + (keywords["host"].empty() ? nth(addresses, i) : keywords["host"]);
    if (!keywords["port"].empty()) where_ += ':' + keywords["port"];
  }
  if (where_.empty()) where_ = "the default host";
  if (const auto it = keywords.find("dbname"); it != keywords.end()) where_ += '/' + it->second;
}

void Endpoint::note_pooler() {
  if (behind_pooler_.exchange(true)) return;
  log(LogLevel::kWarning,
      "postgres at " + where_ +
          ": a pooler answers instead of the server: statements are unnamed, and waiters poll "
          "instead of being woken. Connect to the server itself, or write pooler=none if the "
          "pooler keeps a session to one server connection");
}

void Endpoint::log(LogLevel level, const std::string& line) const {
  if (options_.log) options_.log(level, line);
}

}  // namespace simba::postgres
