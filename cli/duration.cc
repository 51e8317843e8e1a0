#include "cli/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "cli/usage.h"

namespace simba::cli {
namespace {

struct Unit {
  std::string_view name;
  milliseconds span;
};
constexpr std::array kUnits{Unit{"ms", milliseconds{1}}, Unit{"s", std::chrono::seconds{1}},
                            Unit{"m", std::chrono::minutes{1}}, Unit{"h", std::chrono::hours{1}},
                            Unit{"d", std::chrono::hours{24}}};
constexpr milliseconds kLongest = std::chrono::hours{24 * 365};

std::string quoted(std::string_view text) { return '\'' + std::string(text) + '\''; }

[[noreturn]] void refuse(std::string_view what, std::string_view text, const std::string& why) {
  throw UsageError(std::string(what) + " is " + quoted(text) + why +
                   "; write a number and a unit of ms, s, m, h or d, as in 500ms, 10s or 2m");
}

// Takes the unit off the front of `rest`: all letters up to the next digit.
const Unit* take_unit(std::string_view& rest) {
  const std::size_t end = std::min(rest.find_first_of("0123456789."), rest.size());
  const std::string_view name = rest.substr(0, end);
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    rest.remove_prefix(end);
    return &unit;
  }
  return nullptr;
}

double take_number(std::string_view what, std::string_view text, std::string_view& rest) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number)) refuse(what, text, ", which is no duration");
  if (number < 0) refuse(what, text, ", which is below 0");
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

}  // namespace

milliseconds parse_duration(std::string_view what, std::string_view text) {
  if (text == "0") return milliseconds{0};
  double sum = 0;
  std::string_view rest = text;
  do {
    const double number = take_number(what, text, rest);
    if (rest.empty()) refuse(what, text, " without a unit");
    const Unit* unit = take_unit(rest);
    if (unit == nullptr) {
      refuse(what, text, rest.front() == ' ' ? " with a space in it" : ", whose unit is unknown");
    }
    sum += number * static_cast<double>(unit->span.count());
  } while (!rest.empty());
  const bool is_too_long = sum > static_cast<double>(kLongest.count());
  if (is_too_long || (sum > 0 && sum < 1)) {
    throw UsageError(std::string(what) + " is " + quoted(text) + "; it can be at " +
                     (is_too_long ? "most 365d" : "least 1ms, or 0"));
  }
  return milliseconds{std::llround(sum)};
}

std::string typed_duration(nanoseconds span) {
  const auto whole = std::chrono::floor<milliseconds>(span);
  const Unit* unit = &kUnits.front();
  for (const Unit& larger : kUnits) {
    if (whole != milliseconds{0} && whole % larger.span == milliseconds{0}) unit = &larger;
  }
  return std::to_string(whole / unit->span) + std::string(unit->name);
}

std::string print_duration(milliseconds span) {
  if (span < std::chrono::seconds{1}) return std::to_string(span.count()) + " ms";
  constexpr std::array kParts{
      std::pair{"d", std::chrono::seconds{86'400}}, std::pair{"h", std::chrono::seconds{3'600}},
      std::pair{"min", std::chrono::seconds{60}}, std::pair{"s", std::chrono::seconds{1}}};
  auto left = std::chrono::duration_cast<std::chrono::seconds>(span);
  if (const auto tenths = span % std::chrono::seconds{1} / 100; tenths > milliseconds{0}) {
    if (left < std::chrono::seconds{10}) {
      return std::to_string(left.count()) + '.' + std::to_string(tenths.count()) + " s";
    }
  }
  std::string text;
  for (const auto& [name, part] : kParts) {  // the first that is not zero, and the next one
    if (text.empty() && left < part) continue;
    const bool last = !text.empty();
    if (const auto count = left / part; count != 0) {
      text += (last ? " " : "") + std::to_string(count) + ' ' + name;
    }
    left %= part;
    if (last) break;
  }
  return text;
}

std::string print_bound(milliseconds span) {
  const milliseconds grain = span < std::chrono::seconds{1} ? milliseconds{1}
                             : span < std::chrono::hours{1} ? std::chrono::seconds{1}
                             : span < std::chrono::days{1}  ? std::chrono::minutes{1}
                                                            : std::chrono::hours{1};
  return print_duration((span + grain - milliseconds{1}) / grain * grain);
}

}  // namespace simba::cli
