#include "testing/servers/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "testing/servers/unique_fd.h"

namespace simba::servers {
namespace {

UniqueFd dial(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!socket || ::connect(socket.get(), generic, sizeof address) != 0) return {};
  return socket;
}

}  // namespace

bool listens(std::uint16_t port) { return static_cast<bool>(dial(port)); }

std::string ask(std::uint16_t port, std::string_view words, std::chrono::milliseconds patience) {
  const UniqueFd socket = dial(port);
  if (!socket) return {};
  if (::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd wait{socket.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return answer;
    std::array<char, 4096> buffer{};
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return answer;
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace simba::servers
