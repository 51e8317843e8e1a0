#include "stores/kit/url.h"

#include <algorithm>
#include <charconv>

#include "simba/error.h"

namespace simba::kit {
namespace {

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

}  // namespace

void refuse_url(std::string_view whose, const std::string& why) {
  throw Error(Errc::kMisconfigured, std::string(whose) + ": " + why);
}

std::string percent_decoded(std::string_view whose, std::string_view text) {
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
      refuse_url(whose, "a '%' is not a %XX of two hexadecimal digits other than 00");
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

Query parse_query(std::string_view whose, std::string_view query) {
  Query found;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const std::size_t equals = one.find('=');
    if (equals == one.npos) {
      refuse_url(whose, "parameter " + std::to_string(found.size() + 1) +
                            " has no value; write name=value");
    }
    found.emplace_back(percent_decoded(whose, one.substr(0, equals)),
                       percent_decoded(whose, one.substr(equals + 1)));
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return distance(word, a) < distance(word, b);
  });
  const std::size_t steps = distance(word, *best);
  if (steps <= std::max<std::size_t>(2, word.size() / 3) && steps < best->size()) {
    return "; did you mean '" + std::string(*best) + "'?";
  }
  std::string all = "; it can be ";
  for (const std::string_view each : known) {
    if (each != known.front()) all += each == known.back() ? " or " : ", ";
    all += each;
  }
  return all;
}

void refuse_parameter(std::string_view whose, std::string_view query, std::string_view name,
                      std::span<const std::string_view> known) {
  constexpr std::size_t kLongestName = 32;
  if (query.find('@') != query.npos) {
    refuse_url(whose,
               "a parameter is unknown, and an '@' follows: in a password '?' is written %3F, '&' "
               "%26 and '@' %40");
  }
  if (name.size() > kLongestName) refuse_url(whose, "a parameter is unknown");
  refuse_url(whose,
             "there is no parameter '" + std::string(name) + '\'' + did_you_mean(name, known));
}

long parse_number(std::string_view whose, std::string_view name, std::string_view value, long least,
                  long most) {
  long number = 0;
  const auto [last, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || last != value.data() + value.size() || number < least ||
      number > most) {
    refuse_url(whose, std::string(name) + " is a whole number from " + std::to_string(least) +
                          " to " + std::to_string(most));
  }
  return number;
}

}  // namespace simba::kit
