#include <array>
#include <charconv>
#include <string>

#include "simba/sqlite.h"
#include "stores/kit/url.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kScheme = "sqlite:";
constexpr std::string_view kWhose = "sqlite URL";
constexpr std::string_view kForms =
    "; write sqlite: for the default file, sqlite:PATH or sqlite:///abs/path?synchronous=full";

[[noreturn]] void refuse(const std::string& why) { kit::refuse_url(kWhose, why); }

void set(SqliteOptions& options, std::string_view name, const std::string& value) {
  static constexpr std::array<std::string_view, 2> kNames{"synchronous", "open-timeout"};
  static constexpr std::array<std::string_view, 2> kModes{"normal", "full"};
  if (name == "synchronous") {
    if (value != "normal" && value != "full") {
      refuse("synchronous cannot be '" + value + "'" + kit::did_you_mean(value, kModes));
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
    refuse("there is no parameter '" + std::string(name) + "'" + kit::did_you_mean(name, kNames));
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
  if (question != rest.npos) {
    for (const auto& [name, value] : kit::parse_query(kWhose, rest.substr(question + 1))) {
      set(options, name, value);
    }
  }
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
  options.file = kit::percent_decoded(kWhose, rest);
  return options;
}

}  // namespace simba::inline v0
