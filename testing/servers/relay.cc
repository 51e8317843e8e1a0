#include "testing/servers/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>
#include <vector>

namespace simba::servers {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

UniqueFd open_socket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

void set(int socket, int level, int option) {
  const int yes = 1;
  ::setsockopt(socket, level, option, &yes, sizeof yes);
}

// A reset, so that the other side hears of it at once.
void reset(const UniqueFd& socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

UniqueFd listen_on(std::uint16_t port) {
  UniqueFd listener = open_socket();
  set(listener.get(), SOL_SOCKET, SO_REUSEADDR);
  const sockaddr_in address = loopback(port);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 64) != 0) {
    throw std::runtime_error("a relay cannot listen on its port");
  }
  return listener;
}

}  // namespace

Relay::Relay(std::uint16_t target) : target_(target), listener_(listen_on(port_.number())) {
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  ends_ = true;
  thread_.join();
}

void Relay::mend() { mode_ = Mode::kPass; }

void Relay::deceive_with(Lie lie, Mode mode) {
  const std::lock_guard lock(guard_);
  lie_ = std::move(lie);
  mode_ = mode;
}

void Relay::run() {
  constexpr int kLook = 2;  // milliseconds until a change of mode is seen
  while (!ends_) {
    const Mode mode = mode_;
    if (mode == Mode::kCut) {
      for (Pair& pair : pairs_) reset(pair.client), reset(pair.server);
      pairs_.clear();
    }
    if (mode == Mode::kPass) std::erase_if(pairs_, [](const Pair& pair) { return pair.is_spoilt; });
    std::vector<pollfd> sources{{listener_.get(), POLLIN, 0}};
    const bool holds = mode == Mode::kStall;
    for (const Pair& pair : pairs_) {
      sources.push_back({holds ? -1 : pair.client.get(), POLLIN, 0});
      sources.push_back({holds ? -1 : pair.server.get(), POLLIN, 0});
    }
    ::poll(sources.data(), sources.size(), kLook);
    std::size_t at = 1;
    for (auto it = pairs_.begin(); it != pairs_.end(); at += 2) {
      const bool lives = carry(*it, sources[at].revents, sources[at + 1].revents);
      it = lives ? std::next(it) : pairs_.erase(it);
    }
    if (sources[0].revents != 0) accept_one();
  }
}

void Relay::accept_one() {
  UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  if (mode_ == Mode::kCut) return reset(client);
  UniqueFd server = open_socket();
  const sockaddr_in address = loopback(target_);
  if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return reset(client);
  }
  set(client.get(), IPPROTO_TCP, TCP_NODELAY);
  set(server.get(), IPPROTO_TCP, TCP_NODELAY);
  pairs_.push_back({std::move(client), std::move(server), false});
}

bool Relay::carry(Pair& pair, short client_events, short server_events) {
  if (client_events != 0 && !copy(pair.client.get(), pair.server.get())) return false;
  const Mode mode = mode_;
  const bool floods = mode == Mode::kFlood && pair.is_spoilt;
  if (server_events == 0 && !floods) return true;
  if (mode == Mode::kLie || mode == Mode::kFlood) return deceive(pair);
  if (mode != Mode::kMute) return copy(pair.server.get(), pair.client.get());
  pair.is_spoilt = true;
  return copy(pair.server.get(), -1);
}

// Never waits: a client that hears enough does not read on.
bool Relay::deceive(Pair& pair) {
  std::array<char, 65'536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t got = ::recv(pair.server.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  const bool has_ended = got == 0 || (got < 0 && errno != EAGAIN);
  if (has_ended) return false;
  const std::string_view said(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  std::string bytes;
  {
    const std::lock_guard lock(guard_);
    bytes = lie_(said);
  }
  pair.is_spoilt = pair.is_spoilt || bytes != said;
  const ssize_t sent =
      ::send(pair.client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent >= 0 || errno == EAGAIN;
}

bool Relay::copy(int from, int to) const {
  std::array<char, 65'536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  for (ssize_t done = 0; to >= 0 && done < got;) {
    const ssize_t sent =
        ::send(to, buffer.data() + done, static_cast<std::size_t>(got - done), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += sent;
  }
  return true;
}

}  // namespace simba::servers
