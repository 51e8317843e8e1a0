#include "torture/counts.h"

#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "testing/servers/tool.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kPatience = 2s;
// Connections come and go with the faults, rows of the mutexes stay.
constexpr double kRowShare = 0.01, kRows = 2, kShare = 0.1, kConnections = 10;

double size_of(const std::filesystem::path& file) {
  std::error_code gone;
  const auto size = std::filesystem::file_size(file, gone);
  return gone ? 0 : static_cast<double>(size) / 1'024;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

// What a tool prints; nothing where it fails.
std::string said(const std::vector<std::string>& words) try {
  return servers::output_of(words, kPatience);
} catch (const std::runtime_error&) {
  return {};
}

}  // namespace

std::vector<Count> count_sqlite(const std::filesystem::path& file) {
  std::vector<Count> counts{
      {"file KiB", size_of(file), kShare, 16},
      // It is emptied when it has reached a length, and then written from its start.
      {"log KiB", size_of(file.string() + "-wal"), kShare, 1'024}};
  const auto rows =
      number_in(said({"sqlite3", "-readonly", file.string(), "SELECT count(*) FROM simba_mutex"}));
  if (rows) counts.push_back({"rows", *rows, kRowShare, kRows});
  return counts;
}

std::vector<Count> count_redis(const servers::RedisServer& server) {
  std::vector<Count> counts;
  std::istringstream lines(said({"redis-cli", "-s", server.socket().string(), "INFO"}));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    const std::string name = line.substr(0, colon);
    const auto value = colon == line.npos ? std::nullopt : number_in(line.substr(colon + 1));
    if (!value) continue;
    if (name == "connected_clients")
      counts.push_back({"connections", *value, kShare, kConnections});
    if (name == "pubsub_channels") counts.push_back({"channels", *value, kShare, 20});
  }
  const auto keys = number_in(said({"redis-cli", "-s", server.socket().string(), "DBSIZE"}));
  if (keys) counts.push_back({"keys", *keys, kShare, 20});
  return counts;
}

}  // namespace simba::torture
