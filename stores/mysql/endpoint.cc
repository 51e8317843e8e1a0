#include "stores/mysql/endpoint.h"

#include <algorithm>

namespace simba::mysql {
namespace {

constexpr std::size_t kLongestName = 64;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "mysql: " + why);
}

bool is_identifier(std::string_view word) {
  return !word.empty() && word.size() <= kLongestName &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

std::string quoted(const char* what, const std::string& name) {
  if (is_identifier(name)) return '`' + name + '`';
  refuse("the name of the " + std::string(what) + " is of letters, digits, '_' and '-', 1 to " +
         std::to_string(kLongestName));
}

std::string place_of(const MysqlOptions& options) {
  if (options.connector) return "the given connection";
  if (!options.socket.empty()) return options.socket;
  std::string all;
  for (const auto& [host, port] : options.hosts) {
    all += (all.empty() ? "" : ",") + host + ':' + std::to_string(port);
  }
  return all;
}

}  // namespace

Endpoint::Endpoint(const MysqlOptions& options)
    : options_(options),
      where_(place_of(options) + '/' + options.database),
      quoted_database_(quoted("database", options.database)),
      quoted_table_(quoted_database_ + '.' + quoted("table", options.table)) {
  if (options.connections < 2 || options.connections > 1'000) {
    refuse(std::to_string(options.connections) +
           " connections cannot be: one is kept for renewals, so 2 to 1000");
  }
  if (options.max_id_length < 32 || options.max_id_length > 128) {
    refuse("ids of at most " + std::to_string(options.max_id_length) +
           " bytes cannot be: the column holds 32 to 128");
  }
  if (options.hosts.empty() && options.socket.empty() && !options.connector) {
    refuse("there is no host to connect to");
  }
  if (options.certificate.empty() != options.key.empty()) {
    refuse("a certificate of ours needs its key and a key its certificate (sslcert, sslkey)");
  }
}

bool Endpoint::has_several_hosts() const {
  return !options_.connector && options_.socket.empty() && options_.hosts.size() > 1;
}

void Endpoint::log(LogLevel level, const std::string& line) const {
  if (options_.log) options_.log(level, "mysql at " + where_ + ": " + line);
}

void Endpoint::note_once(Note note, const std::string& line) {
  if (said_[static_cast<std::size_t>(note)].exchange(true)) return;
  log(LogLevel::kWarning, line);
}

}  // namespace simba::mysql
