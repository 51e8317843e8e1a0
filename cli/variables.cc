#include "cli/variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "cli/output.h"
#include "cli/usage.h"

namespace simba::cli {
namespace {

constexpr std::string_view kPrefix = "SIMBA_";
constexpr std::array<std::string_view, 3> kOfPrograms{"SIMBA_MUTEX", "SIMBA_OWNER", "SIMBA_TOKEN"};

// What Kubernetes makes for a service whose name begins so.
bool is_of_service(std::string_view name) {
  return name.find("_SERVICE_HOST") != name.npos || name.find("_SERVICE_PORT") != name.npos ||
         name.find("_PORT_") != name.npos || name.ends_with("_PORT");
}

bool is_of_others(std::string_view name) {
  return name.starts_with("SIMBA_TEST_") || is_of_service(name) ||
         std::find(kOfPrograms.begin(), kOfPrograms.end(), name) != kOfPrograms.end();
}

[[noreturn]] void refuse(const std::string& name, std::span<const std::string> known) {
  std::string all;
  for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
  const std::string_view near = nearest(name, known);
  throw UsageError("the variable " + printable(name) + " is not known" +
                   (near.empty() ? "." : "; did you mean " + std::string(near) + "?") +
                   " It can be " + all);
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

void check_variables(std::span<const std::string> known) {
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry(*each);
    const std::string name(entry.substr(0, entry.find('=')));
    if (!name.starts_with(kPrefix) || is_of_others(name)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse(name, known);
  }
}

}  // namespace simba::cli
