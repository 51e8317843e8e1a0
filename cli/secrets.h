#pragma once

#include <string>

// Passwords in URLs: beside the user's name, and in parameters that a store has declared to be
// secret or whose names say so.
namespace simba::cli {

bool has_password(const std::string& url);

// With *** where one may stand: rather too often.
std::string without_password(std::string url);

}  // namespace simba::cli
