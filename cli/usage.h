#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace simba::cli {

// What the user typed cannot be done. what() names the value and what to type instead.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The nearest of `known`, or nothing when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string> known);

// "; did you mean 'ls'? See" or "; see": to be followed by where the help is.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace simba::cli
