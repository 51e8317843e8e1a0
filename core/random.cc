#include "core/random.h"

#include <sys/random.h>

#include <cerrno>

#include "simba/error.h"

namespace simba::core {

std::uint64_t random64() {
  std::uint64_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR)
      throw Error(Errc::kMisconfigured, "the kernel gives no random bytes (getrandom)");
  }
  return bits;
}

}  // namespace simba::core
