#pragma once

#include <string>

#include "cli/config_file.h"
#include "simba/client.h"

// What was probably meant, for names that the parser cannot know.
namespace simba::cli {

// Throws UsageError that names where the URL was said, for a scheme that nobody serves, if one that
// is served was probably meant.
void check_scheme(const Configured& store);
// The same for a URL that its store does not take. Asks no server.
void check_url(const Configured& store);

// "; did you mean 'nightly'?" for a mutex that nobody ever held, if one that somebody did is near.
// Empty where there is none, or where the store cannot be asked.
std::string suggest_mutex(Client& client, const std::string& mutex);
// The same for the beginning of names under which there are none: also of names up to a '/'.
std::string suggest_prefix(Client& client, const std::string& prefix);

// Says to a person at a terminal that a mutex is new, if one that somebody held is near: it is
// about to be made. Asks the store only then, and not for long.
void tell_if_new(Client& client, const std::string& mutex);

}  // namespace simba::cli
