#include "testing/servers/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <random>
#include <stdexcept>
#include <string>

#include "testing/servers/directory.h"

namespace simba::servers {
namespace {

// Below what Linux gives to outgoing connections (32768 and up): no client can sit on our port.
constexpr unsigned kFirst = 20'000;
constexpr unsigned kCount = 12'000;

// Whoever is not a test of ours takes no lock: ask the kernel too.
bool is_free(std::uint16_t number) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;  // connections in TIME_WAIT do not matter, a listener does
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(number);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Port::Port() {
  std::random_device random;
  const unsigned start = random() % kCount;
  for (unsigned i = 0; i < kCount; ++i) {
    if (take(static_cast<std::uint16_t>(kFirst + (start + i) % kCount))) return;
  }
  throw std::runtime_error("there is no free port from 20000 to 31999");
}

bool Port::take(std::uint16_t candidate) {
  const auto file = shared_directory("ports") / std::to_string(candidate);
  UniqueFd lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || !is_free(candidate)) return false;
  number_ = candidate;
  lock_ = std::move(lock);
  return true;
}

}  // namespace simba::servers
