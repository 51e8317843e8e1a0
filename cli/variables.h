#pragma once

#include <optional>
#include <span>
#include <string>

// Variables of the environment that are settings.
namespace simba::cli {

// None where it is empty.
std::optional<std::string> variable(const char* name);

// Throws UsageError for one that begins with SIMBA_ and means nothing, with the nearest of `known`.
// Left alone: what the tool gives the programs that it runs, SIMBA_TEST_*, and what Kubernetes
// makes for a service of that name, as SIMBA_SERVICE_HOST.
void check_variables(std::span<const std::string> known);

}  // namespace simba::cli
