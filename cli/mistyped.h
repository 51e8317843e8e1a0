#pragma once

#include <string>

#include "simba/client.h"

// What was probably meant, for names of mutexes.
namespace simba::cli {

// "; did you mean 'nightly'?" for a mutex that nobody ever held, if one that somebody did is near.
// Empty where there is none, or where the store cannot be asked.
std::string suggest_mutex(Client& client, const std::string& mutex);
// The same for the beginning of names under which there are none: also of names up to a '/'.
std::string suggest_prefix(Client& client, const std::string& prefix);

// Says to a person at a terminal that a mutex is new, if one that somebody held is near: it is
// about to be made. Asks the store only then, and not for long.
void tell_if_new(Client& client, const std::string& mutex);

}  // namespace simba::cli
