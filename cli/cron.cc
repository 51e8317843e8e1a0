#include "cli/cron.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <tuple>
#include <vector>

#include "cli/usage.h"

namespace simba::cli {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNicknames{
    {{"@yearly", "0 0 1 1 *"},
     {"@annually", "0 0 1 1 *"},
     {"@monthly", "0 0 1 * *"},
     {"@weekly", "0 0 * * 0"},
     {"@daily", "0 0 * * *"},
     {"@midnight", "0 0 * * *"},
     {"@hourly", "0 * * * *"}}};
constexpr int kFarthestYears = 8;  // February 29 is at most this far away

struct Field {
  const char* name;
  int from, to;
  std::span<const std::string_view> words{};  // for from, from + 1, ...
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse(const Field& field, std::string_view text) {
  throw UsageError("--cron: the " + std::string(field.name) + " is '" + std::string(text) +
                   "'; it can be *, numbers from " + std::to_string(field.from) + " to " +
                   std::to_string(field.to) +
                   (field.words.empty() ? "" : " or names like " + std::string(field.words[1])) +
                   ", ranges like 2-5, lists like 1,4 and steps like */2");
}

int value_of(const Field& field, std::string_view text, std::string_view whole) {
  const std::string_view lower = text.substr(0, 3);
  for (std::size_t i = 0; i < field.words.size(); ++i) {
    const bool same = lower.size() == 3 && text.size() == 3 &&
                      std::equal(lower.begin(), lower.end(), field.words[i].begin(),
                                 [](char a, char b) { return (a | 0x20) == b; });
    if (same) return field.from + static_cast<int>(i);
  }
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool ok = error == std::errc{} && end == text.data() + text.size();
  if (!ok || value < field.from || value > field.to) refuse(field, whole);
  return value;
}

// One of the parts of a list: *, 3, 2-5, each with a step or without.
template <std::size_t size>
void add_part(const Field& field, std::string_view part, std::string_view whole,
              std::bitset<size>& set) {
  const std::size_t slash = part.find('/');
  const std::string_view range = part.substr(0, slash);
  int step = 1;
  if (slash != part.npos) {
    const std::string_view text = part.substr(slash + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (error != std::errc{} || end != text.data() + text.size() || step < 1) refuse(field, whole);
    step = std::min(step, field.to + 1);  // beyond the last value, and no further
  }
  int from = field.from, to = field.to;
  if (range != "*") {
    const std::size_t dash = range.find('-');
    from = value_of(field, range.substr(0, dash), whole);
    const bool is_open = dash == range.npos && slash != part.npos;  // 5/10: from 5 on
    if (dash != range.npos) to = value_of(field, range.substr(dash + 1), whole);
    if (dash == range.npos && !is_open) to = from;
    if (from > to) refuse(field, whole);
  }
  for (int value = from; value <= to; value += step) {
    set.set(static_cast<std::size_t>(value) % size);  // Sunday is 0 and 7
  }
}

// True: everything, so that the field does not choose.
template <std::size_t size>
bool parse(const Field& field, std::string_view text, std::bitset<size>& set) {
  for (const std::string_view part : split(text, ',')) add_part(field, part, text, set);
  return text.starts_with('*');
}

[[noreturn]] void refuse_nickname(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [name, meaning] : kNicknames) known.emplace_back(name);
  const std::string_view near = nearest(text, known);
  throw UsageError("--cron is '" + std::string(text) + "', which is not known" +
                   (near.empty() ? "." : "; did you mean '" + std::string(near) + "'?") +
                   " It can be @hourly, @daily, @weekly, @monthly or @yearly");
}

std::vector<std::string_view> fields_of(std::string_view expression) {
  std::vector<std::string_view> fields;
  for (const std::string_view field : split(expression, ' ')) {
    if (!field.empty()) fields.push_back(field);
  }
  return fields;
}

auto wall_clock(const std::tm& at) {
  return std::tuple(at.tm_year, at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min);
}

// The beginning of another day or hour, whatever the clocks do in between.
std::time_t begin_of(std::tm at, int days, int hours) {
  at.tm_mday += days;
  at.tm_hour = days > 0 ? 0 : at.tm_hour + hours;
  at.tm_min = at.tm_sec = 0;
  at.tm_isdst = -1;
  return std::mktime(&at);
}

}  // namespace

Cron::Cron(std::string_view expression) {
  for (const auto& [name, meaning] : kNicknames) {
    if (expression == name) expression = meaning;
  }
  const auto fields = fields_of(expression);
  if (expression.starts_with('@')) refuse_nickname(expression);
  if (fields.size() != 5) {
    throw UsageError("--cron is '" + std::string(expression) + "': it has " +
                     std::to_string(fields.size()) + (fields.size() == 1 ? " field" : " fields") +
                     ", not 5 (minute, hour, day of the month, month, day of the week), as "
                     "in '*/5 * * * *'; @hourly, @daily, @weekly, @monthly and @yearly work too");
  }
  parse(Field{"minute", 0, 59}, fields[0], minutes_);
  any_hour_ = parse(Field{"hour", 0, 23}, fields[1], hours_);
  any_day_ = parse(Field{"day of the month", 1, 31}, fields[2], days_);
  parse(Field{"month", 1, 12, kMonths}, fields[3], months_);
  any_weekday_ = parse(Field{"day of the week", 0, 7, kWeekdays}, fields[4], weekdays_);
  if (any_weekday_ && !has_day()) {
    throw UsageError("--cron is '" + std::string(expression) +
                     "': that day never comes; February has 29 days at most, and April, June, "
                     "September and November have 30");
  }
}

bool Cron::has_day() const {
  constexpr std::array<std::size_t, 13> kDays{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (std::size_t month = 1; month < kDays.size(); ++month) {
    for (std::size_t day = 1; months_[month] && day <= kDays[month]; ++day) {
      if (days_[day]) return true;
    }
  }
  return false;
}

bool Cron::matches_day(const std::tm& at) const {
  const bool day = days_[static_cast<std::size_t>(at.tm_mday)];
  const bool weekday = weekdays_[static_cast<std::size_t>(at.tm_wday)];
  return any_day_ || any_weekday_ ? day && weekday : day || weekday;
}

std::optional<std::time_t> Cron::next(std::time_t now) const {
  std::tm start{}, at{};
  localtime_r(&now, &start);
  std::time_t candidate = now - now % 60 + 60;
  while (true) {
    localtime_r(&candidate, &at);
    if (at.tm_year > start.tm_year + kFarthestYears) return std::nullopt;
    std::time_t later = candidate;
    if (!months_[static_cast<std::size_t>(at.tm_mon) + 1] || !matches_day(at)) {
      later = begin_of(at, 1, 0);
    } else if (!hours_[static_cast<std::size_t>(at.tm_hour)]) {
      later = begin_of(at, 0, 1);
    } else if (!minutes_[static_cast<std::size_t>(at.tm_min)] ||
               // Clocks were set back, and show again what they showed before.
               (!any_hour_ && wall_clock(at) <= wall_clock(start))) {
      later = candidate + 60;
    } else {
      return candidate;
    }
    candidate = std::max(later, candidate + 60);
  }
}

}  // namespace simba::cli
