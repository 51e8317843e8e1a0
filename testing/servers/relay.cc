#include "testing/servers/relay.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
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

UniqueFd open_socket(int family = AF_INET) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void set(int socket, int level, int option) {
  const int yes = 1;
  ::setsockopt(socket, level, option, &yes, sizeof yes);
}

// Its end is a reset, so that the other side hears of it at once.
void end_by_reset(const UniqueFd& socket) {
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

Relay::Relay(std::uint16_t target) : Relay("127.0.0.1", target) {}

Relay::Relay(const std::string& host, std::uint16_t target) : Relay(find(host, target)) {}

Relay::Relay(const Address& target) : target_(target), listener_(listen_on(port_.number())) {
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  ends_ = true;
  thread_.join();
}

Relay::Address Relay::find(const std::string& host, std::uint16_t port) {
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wish, &found);
  if (error != 0) {
    throw std::runtime_error("a relay cannot find '" + host + "': " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  Address address;
  address.size = found->ai_addrlen;
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  return address;
}

void Relay::deceive_with(Lie lie, Mode mode) {
  const std::lock_guard lock(guard_);
  lie_ = std::move(lie);
  mode_ = mode;
}

void Relay::run() {
  constexpr int kLook = 2;  // milliseconds until a change of mode is seen
  while (!ends_) {
    const Mode mode = mode_;
    if (mode == Mode::kCut || resets_.exchange(false)) reset_all();
    if (mode == Mode::kPass) std::erase_if(pairs_, [](const Pair& pair) { return pair.is_spoilt; });
    std::vector<pollfd> sources{{listener_.get(), POLLIN, 0}};
    const bool holds = mode == Mode::kStall;
    for (const Pair& pair : pairs_) {
      const bool reads = !holds && !pair.is_ending;
      sources.push_back({reads ? pair.client.get() : -1, POLLIN, 0});
      sources.push_back({reads ? pair.server.get() : -1, POLLIN, 0});
    }
    ::poll(sources.data(), sources.size(), kLook);
    std::size_t at = 1;
    for (auto it = pairs_.begin(); it != pairs_.end(); at += 2) {
      const bool lives = holds || carry(*it, sources[at].revents, sources[at + 1].revents);
      it = lives ? std::next(it) : pairs_.erase(it);
    }
    if (sources[0].revents != 0) accept_one();
  }
}

void Relay::reset_all() {
  for (Pair& pair : pairs_) end_by_reset(pair.client), end_by_reset(pair.server);
  pairs_.clear();
}

void Relay::accept_one() {
  UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  if (mode_ == Mode::kCut) return end_by_reset(client);
  UniqueFd server = open_socket(target_.bytes.ss_family);
  const auto* address = reinterpret_cast<const sockaddr*>(&target_.bytes);
  if (::connect(server.get(), address, target_.size) != 0) return end_by_reset(client);
  set(client.get(), IPPROTO_TCP, TCP_NODELAY);
  set(server.get(), IPPROTO_TCP, TCP_NODELAY);
  pairs_.push_back({std::move(client), std::move(server), false, false, {}, {}, {}});
}

bool Relay::carry(Pair& pair, short client_events, short server_events) {
  if (client_events != 0 && !read_into(pair.to_server, pair.client.get())) pair.is_ending = true;
  const Mode mode = mode_;
  if (mode == Mode::kLie || mode == Mode::kFlood) {
    const bool floods = mode == Mode::kFlood && pair.is_spoilt;
    if ((server_events != 0 || floods) && !deceive(pair)) return false;
    if (floods) return pass_on(pair.to_server, pair.server.get());
  } else if (server_events != 0 && !read_into(pair.to_client, pair.server.get())) {
    pair.is_ending = true;
  }
  if (mode == Mode::kMute && !pair.to_client.empty()) {
    pair.is_spoilt = true;
    pair.to_client.clear();
  }
  const bool works =
      pass_on(pair.to_server, pair.server.get()) && pass_on(pair.to_client, pair.client.get());
  const bool has_all = pair.to_server.empty() && pair.to_client.empty();
  return works && !(pair.is_ending && has_all);
}

// Never waits: a client that hears enough does not read on.
bool Relay::deceive(Pair& pair) {
  std::array<char, 65'536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t got = ::recv(pair.server.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  const bool has_ended = got == 0 || (got < 0 && errno != EAGAIN);
  const bool floods = mode_ == Mode::kFlood && pair.is_spoilt;
  if (has_ended && !floods) return false;
  pair.is_ending = pair.is_ending || has_ended;
  const std::string_view said(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  // A flood is told to the last byte before it goes on: else it would be noise.
  if (pair.untold.empty()) {
    const std::lock_guard lock(guard_);
    pair.untold = lie_(said);
    pair.is_spoilt = pair.is_spoilt || pair.untold != said;
  }
  const ssize_t sent = ::send(pair.client.get(), pair.untold.data(), pair.untold.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool is_open = sent >= 0 || errno == EAGAIN;
  const auto told = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  pair.untold.erase(0, mode_ == Mode::kFlood ? told : pair.untold.size());
  return is_open;
}

bool Relay::read_into(std::deque<Late>& queue, int from) const {
  std::array<char, 65'536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  queue.push_back({Clock::now() + delay_.load(), {buffer.data(), static_cast<std::size_t>(got)}});
  return true;
}

bool Relay::pass_on(std::deque<Late>& queue, int to) {
  for (; !queue.empty() && queue.front().due <= Clock::now(); queue.pop_front()) {
    const std::string& bytes = queue.front().bytes;
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t sent = ::send(to, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      done += static_cast<std::size_t>(sent);
    }
  }
  return true;
}

}  // namespace simba::servers
