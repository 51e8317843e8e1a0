#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "simba/mysql.h"
#include "stores/kit/url.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kWhose = "mysql URL";
constexpr long kDefaultPort = 3306;
constexpr std::array<std::string_view, 11> kParameters{
    "sslmode", "sslrootcert", "sslcert", "sslkey",          "socket",       "password-file",
    "table",   "connections", "dialect", "connect_timeout", "max_id_length"};
constexpr std::array<std::string_view, 3> kModes{"verify-full", "require", "disable"};
constexpr std::array<std::string_view, 3> kDialects{"detect", "mariadb", "mysql"};

template <class Choice, std::size_t N>
Choice choice(std::string_view name, std::string_view value,
              const std::array<std::string_view, N>& words) {
  const auto* const it = std::find(words.begin(), words.end(), value);
  if (it != words.end()) return static_cast<Choice>(it - words.begin());
  std::string all;
  for (const std::string_view word : words) all += (all.empty() ? "" : ", ") + std::string(word);
  kit::refuse_url(kWhose, std::string(name) + " is one of " + all);
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (in && (std::getline(in, line) || in.eof())) return line;
  kit::refuse_url(kWhose, "the password-file cannot be read");
}

void set(MysqlOptions& options, const std::string& name, const std::string& value) {
  if (name == "sslmode") options.tls = choice<MysqlOptions::Tls>(name, value, kModes);
  if (name == "sslrootcert") options.root_certificate = value;
  if (name == "sslcert") options.certificate = value;
  if (name == "sslkey") options.key = value;
  if (name == "socket") options.socket = value;
  if (name == "password-file") options.password = first_line(value);
  if (name == "table") options.table = value;
  if (name == "dialect") options.dialect = choice<MysqlOptions::Dialect>(name, value, kDialects);
  const auto number = [&](long least, long most) {
    return kit::parse_number(kWhose, name, value, least, most);
  };
  if (name == "connections") options.connections = static_cast<std::size_t>(number(2, 1'000));
  if (name == "max_id_length") options.max_id_length = static_cast<std::size_t>(number(32, 128));
  if (name == "connect_timeout") options.connect_timeout = std::chrono::seconds(number(1, 3'600));
}

void set_all(MysqlOptions& options, std::string_view query) {
  for (const auto& [name, value] : kit::parse_query(kWhose, query)) {
    if (std::find(kParameters.begin(), kParameters.end(), name) == kParameters.end()) {
      kit::refuse_parameter(kWhose, query, name, kParameters);
    }
    set(options, name, value);
  }
}

MysqlOptions::Host host_of(std::string_view text) {
  std::string_view name = text, port;
  const std::size_t close = text.starts_with('[') ? text.find(']') : 0;
  if (close == text.npos) kit::refuse_url(kWhose, "an address in [] has no end");
  if (const std::size_t colon = text.find(':', close); colon != text.npos) {
    name = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (name.starts_with('[')) name = name.substr(1, close - 1);
  const long number =
      port.empty() ? kDefaultPort : kit::parse_number(kWhose, "a port", port, 1, 65'535);
  return {name.empty() ? "127.0.0.1" : kit::percent_decoded(kWhose, name),
          static_cast<std::uint16_t>(number)};
}

// user:password@host:port,host:port
void set_authority(MysqlOptions& options, std::string_view authority) {
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    const std::string_view user = authority.substr(0, at);
    const std::size_t colon = user.find(':');
    options.user = kit::percent_decoded(kWhose, user.substr(0, colon));
    if (colon != user.npos) {
      options.password = kit::percent_decoded(kWhose, user.substr(colon + 1));
    }
    authority.remove_prefix(at + 1);
  }
  if (authority.empty()) return;
  options.hosts.clear();
  while (true) {
    const std::size_t comma = authority.find(',');
    options.hosts.push_back(host_of(authority.substr(0, comma)));
    if (comma == authority.npos) return;
    authority.remove_prefix(comma + 1);
  }
}

}  // namespace

MysqlOptions mysql_options(std::string_view url) {
  MysqlOptions options;
  const std::size_t colon = url.find(':');
  const std::string_view scheme = url.substr(0, colon);
  if (colon == url.npos || (scheme != "mysql" && scheme != "mariadb")) {
    kit::refuse_url(kWhose, "it begins with mysql: or mariadb:");
  }
  // As the tools of MySQL do. NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* password = std::getenv("MYSQL_PWD")) options.password = password;
  std::string_view rest = url.substr(colon + 1);
  const std::size_t question = rest.find('?');
  const std::string_view query = question == rest.npos ? "" : rest.substr(question + 1);
  rest = rest.substr(0, question);
  if (!rest.empty() && !rest.starts_with("//")) {
    kit::refuse_url(kWhose, "write mysql://user@host:port/database?name=value");
  }
  rest.remove_prefix(std::min<std::size_t>(2, rest.size()));
  const std::size_t slash = rest.find('/');
  set_authority(options, rest.substr(0, slash));
  if (slash != rest.npos && slash + 1 < rest.size()) {
    options.database = kit::percent_decoded(kWhose, rest.substr(slash + 1));
  }
  set_all(options, query);
  return options;
}

}  // namespace simba::inline v0
