#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Pieces of URLs, and what to say of the wrong ones. Values are never repeated: a password may hide
// in any of them.
namespace simba::kit {

// Throws Error (kMisconfigured) with `whose` in front, as in "postgresql URL".
[[noreturn]] void refuse_url(std::string_view whose, const std::string& why);

// With %XX decoded; %00 is refused.
std::string percent_decoded(std::string_view whose, std::string_view text);

// What stands after the '?', decoded: names with their values.
using Query = std::vector<std::pair<std::string, std::string>>;
Query parse_query(std::string_view whose, std::string_view query);

// "; did you mean 'x'?": the nearest of the known words, or all of them where none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

// A parameter that is not known: its name and what may have been meant, unless the name may be a
// piece of a password with a '?' in it. `query` is all that stands after the '?', as it was
// written.
[[noreturn]] void refuse_parameter(std::string_view whose, std::string_view query,
                                   std::string_view name, std::span<const std::string_view> known);

// A whole number within the limits, or a refusal that names them.
long parse_number(std::string_view whose, std::string_view name, std::string_view value, long least,
                  long most);

}  // namespace simba::kit
