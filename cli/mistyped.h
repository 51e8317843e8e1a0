#pragma once

#include <string>

#include "simba/client.h"

// What was probably meant, for names that the parser cannot know.
namespace simba::cli {

// Throws UsageError for a URL whose scheme nobody serves, if one that is served is near.
void check_scheme(const std::string& url);

// "; did you mean 'nightly'?" for a mutex that nobody ever held, if one that somebody did is near.
// Empty where there is none, or where the store cannot be asked.
std::string suggest_mutex(Client& client, const std::string& mutex);

}  // namespace simba::cli
