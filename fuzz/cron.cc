// Cron expressions, and the times they name.
#include <string>

#include "cli/cron.h"
#include "cli/usage.h"
#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const auto now = static_cast<std::time_t>(input.in_range<std::int64_t>(0, 4'102'444'800));
  const std::string text = input.rest();
  simba::fuzz::accepts<simba::cli::UsageError>([&] {
    const simba::cli::Cron cron(text);
    const auto next = cron.next(now);
    if (!next) return;
    simba::fuzz::require(*next > now && *next % 60 == 0, "the next time is a whole minute to come");
    simba::fuzz::require(cron.next(*next - 60) == next, "and the first one from a minute before");
  });
  return 0;
}
