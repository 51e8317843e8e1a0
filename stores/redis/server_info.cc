#include "stores/redis/server_info.h"

#include <algorithm>
#include <charconv>

namespace simba::redis {
namespace {

// Some are repeated in the log.
bool is_word(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return text.size() <= kMost &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// "name:value" of a line in an INFO text; empty: not there, or no word.
std::string_view field(std::string_view info, std::string_view name) {
  for (std::size_t at = info.find(name); at != info.npos; at = info.find(name, at + 1)) {
    const bool begins = at == 0 || info[at - 1] == '\n';
    if (!begins || info.substr(at + name.size(), 1) != ":") continue;
    const std::string_view rest = info.substr(at + name.size() + 1);
    const std::string_view value = rest.substr(0, rest.find_first_of("\r\n"));
    return is_word(value) ? value : std::string_view{};
  }
  return {};
}

// Small enough to be multiplied; else, or where there is none, 0.
std::int64_t number(std::string_view text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value < 0 || value > kMost ? 0 : value;
}

std::int64_t version(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return 0;
  const std::size_t second = text.find('.', dot + 1);
  return number(text) * 10'000 + number(text.substr(dot + 1)) * 100 +
         (second == text.npos ? 0 : number(text.substr(second + 1)));
}

std::int64_t milliseconds_of(const Reply& time) {
  if (time.items.size() != 2) return 0;
  return number(time.items[0].text) * 1'000 + number(time.items[1].text) / 1'000;
}

}  // namespace

std::int64_t latest_start(std::int64_t now, std::int64_t uptime) {
  return (now / 1'000 - uptime + 1) * 1'000;
}

ServerInfo read_info(std::string_view info, const Reply& time) {
  ServerInfo seen;
  seen.version_text = field(info, "redis_version");
  seen.version = version(seen.version_text);
  // A snapshot that was loaded tells what was there once, not what was granted since.
  seen.persists = field(info, "aof_enabled") == "1";
  seen.started = latest_start(milliseconds_of(time), number(field(info, "uptime_in_seconds")));
  seen.eviction_policy = field(info, "maxmemory_policy");
  seen.evicts = number(field(info, "maxmemory")) > 0 && seen.eviction_policy != "noeviction";
  return seen;
}

}  // namespace simba::redis
