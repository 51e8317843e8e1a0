#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simba/sqlite.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kScheme = "sqlite:";
constexpr std::string_view kForms =
    "; write sqlite: for the default file, sqlite:PATH or sqlite:///abs/path?synchronous=full";

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "sqlite URL: " + why);
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* end = text.data() + std::min(i + 3, text.size());
    const auto [last, error] = std::from_chars(text.data() + i + 1, end, byte, 16);
    if (error != std::errc{} || last != text.data() + i + 3 || byte == 0) {
      refuse("'" + std::string(text.substr(i, 3)) + "' is not a %XX of two hexadecimal digits");
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

// How many letters to add, drop or change to get from one word to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return distance(word, a) < distance(word, b);
  });
  return "; did you mean '" + std::string(*best) + "'?";
}

void set(SqliteOptions& options, std::string_view name, const std::string& value) {
  static constexpr std::array<std::string_view, 2> kNames{"synchronous", "open-timeout"};
  static constexpr std::array<std::string_view, 2> kModes{"normal", "full"};
  if (name == "synchronous") {
    if (value != "normal" && value != "full") {
      refuse("synchronous cannot be '" + value + "'" + nearest(value, kModes));
    }
    options.synchronous =
        value == "full" ? SqliteOptions::Synchronous::kFull : SqliteOptions::Synchronous::kNormal;
  } else if (name == "open-timeout") {
    milliseconds::rep count = 0;
    const auto [last, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc{} || last != value.data() + value.size() || count <= 0 ||
        count > 3'600'000) {
      refuse("open-timeout is '" + value + "'; it is milliseconds, 1 to 3600000");
    }
    options.open_timeout = milliseconds{count};
  } else {
    refuse("there is no parameter '" + std::string(name) + "'" + nearest(name, kNames));
  }
}

void set_all(SqliteOptions& options, std::string_view query) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const std::size_t equals = one.find('=');
    if (equals == one.npos) refuse("the parameter '" + std::string(one) + "' has no value");
    set(options, one.substr(0, equals), decode(one.substr(equals + 1)));
  }
}

}  // namespace

SqliteOptions sqlite_options(std::string_view url) {
  if (!url.starts_with(kScheme)) {
    refuse("'" + std::string(url) + "' does not begin with sqlite:" + std::string(kForms));
  }
  std::string_view rest = url.substr(kScheme.size());
  if (const std::size_t fragment = rest.find('#'); fragment != rest.npos) {
    refuse("'#' begins a fragment, which has no meaning here; write %23 for one in a path");
  }
  SqliteOptions options;
  const std::size_t question = rest.find('?');
  if (question != rest.npos) set_all(options, rest.substr(question + 1));
  rest = rest.substr(0, question);
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    if (rest.starts_with("localhost/")) rest.remove_prefix(9);
    if (!rest.starts_with('/')) {
      refuse("'" + std::string(url) + "' names the host '" +
             std::string(rest.substr(0, rest.find('/'))) + "', but a file is of this host" +
             std::string(kForms));
    }
  }
  options.file = decode(rest);
  return options;
}

}  // namespace simba::inline v0
