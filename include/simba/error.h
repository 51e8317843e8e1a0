#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "simba/export.h"

namespace simba::inline v0 {

// What kind of trouble it is. Somebody else owning a mutex is not trouble, it is a value.
enum class Errc {
  kUnreachable =
      1,           // the store did not answer, or the connection broke: whether it acted is unknown
  kDenied,         // the store answered that this user may not
  kTimeout,        // the deadline passed: whether the store acted is unknown
  kMisconfigured,  // an option, a name or the store's set-up is wrong; retrying does not help
  kMisuse,         // the call is not allowed in this state
  kCorrupt,        // the store's data or answer makes no sense
  kReplaced,       // the store is not the one it was (a new file under the same path): terms of
                   // the old one mean nothing any more
};

SIMBA_EXPORT const std::error_category& error_category() noexcept;
inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

// The one exception of the library. what() names the value, the limit and what to do; it never
// holds a password. Whatever a store put into it, it is one line of UTF-8 that a terminal and a log
// can be given as it is: line breaks and tabs become blanks, other control characters and what is
// no UTF-8 become '?'.
//
// Threads: any; copies share their text.
class SIMBA_EXPORT Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& what);
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;
  // NOLINTNEXTLINE(performance-move-constructor-init): who is moved from still says what it says
  Error(Error&& other) noexcept : Error(std::as_const(other)) {}
  Error& operator=(Error&& other) noexcept { return *this = std::as_const(other); }
  ~Error() override = default;

  const char* what() const noexcept override { return said_->what.c_str(); }
  Errc errc() const noexcept { return said_->code; }
  std::error_code code() const noexcept { return make_error_code(errc()); }
  // Trying again may help: the store was not reached, or did not answer in time.
  bool is_transient() const noexcept {
    return errc() == Errc::kUnreachable || errc() == Errc::kTimeout;
  }

 private:
  struct Said {
    Errc code;
    std::string what;
  };
  // Not in the base: how that one shares its text the thread sanitizer cannot see.
  std::shared_ptr<const Said> said_;
};

}  // namespace simba::inline v0

template <>
struct std::is_error_code_enum<simba::Errc> : std::true_type {};
