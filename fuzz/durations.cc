// Durations as people type them.
#include <string>

#include "cli/duration.h"
#include "cli/usage.h"
#include "fuzz/target.h"

using simba::cli::parse_duration;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  simba::milliseconds span{};
  if (!simba::fuzz::accepts<simba::cli::UsageError>([&] { span = parse_duration("ttl", text); }))
    return 0;
  simba::fuzz::require(span.count() >= 0, "no duration is negative");
  simba::fuzz::require(parse_duration("ttl", simba::cli::typed_duration(span)) == span,
                       "a duration printed to be typed means the same");
  simba::fuzz::require(!simba::cli::print_duration(span).empty(), "a duration can be shown");
  return 0;
}
