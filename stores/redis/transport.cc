#include "stores/redis/transport.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "simba/error.h"

namespace simba::redis {
namespace {

std::string reason(int number) { return std::generic_category().message(number); }

[[noreturn]] void fail(const std::string& why) { throw Error(Errc::kUnreachable, why); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void set(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof value);
}

// A server that is gone without a word is noticed.
void set_up(int descriptor) {
  constexpr int kIdle = 10, kInterval = 5, kProbes = 3, kUnacknowledged = 20'000;
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdle);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kInterval);
  set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledged);
}

class Socket {
 public:
  explicit Socket(int family)
      : descriptor_(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
        error_(descriptor_ < 0 ? errno : 0) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  bool is_there() const { return descriptor_ >= 0; }
  int error() const { return error_; }  // why not
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
  int error_;
};

// The error number; 0: connected.
int connect_to(const Socket& socket, const sockaddr* address, socklen_t length, LocalTime deadline,
               const kit::StopSignal& stop) {
  if (!socket.is_there()) return socket.error();
  if (::connect(socket.get(), address, length) == 0) return 0;
  if (errno != EINPROGRESS && errno != EAGAIN) return errno;
  if (!kit::wait_for(socket.get(), POLLOUT, deadline, &stop)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

int connect_path(const std::string& path, LocalTime deadline, const kit::StopSignal& stop) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw Error(Errc::kMisconfigured, "the path of the socket has " + std::to_string(path.size()) +
                                          " bytes; the system takes at most " +
                                          std::to_string(sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Socket socket(AF_UNIX);
  const int error = connect_to(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address,
                               deadline, stop);
  if (error != 0) fail("cannot connect: " + reason(error));
  return socket.release();
}

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) fail("cannot resolve the host: " + std::string(gai_strerror(code)));
  return {found, freeaddrinfo};
}

}  // namespace

Transport::Transport(int descriptor) : descriptor_(descriptor) {
  // Who does not want to wait says so in each call.
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
  const timeval nap{0, std::chrono::microseconds(kNap).count()};
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof nap);
}

Transport::~Transport() { close(descriptor_); }

Transport::Moved Transport::wait_and_read(char* to, std::size_t most) {
  const ssize_t got = recv(descriptor_, to, most, 0);
  if (got > 0) return {static_cast<std::size_t>(got), 0};
  if (got < 0 && would_block()) return {};
  fail(got == 0 ? "the server closed the connection" : reason(errno));
}

Transport::Moved Transport::read(char* to, std::size_t most) {
  const ssize_t got = recv(descriptor_, to, most, MSG_DONTWAIT);
  if (got > 0) return {static_cast<std::size_t>(got), 0};
  if (got < 0 && would_block()) return {0, POLLIN};
  fail(got == 0 ? "the server closed the connection" : reason(errno));
}

Transport::Moved Transport::write(const char* from, std::size_t count) {
  const ssize_t sent = send(descriptor_, from, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return {static_cast<std::size_t>(sent), 0};
  if (would_block()) return {0, POLLOUT};
  fail(reason(errno));
}

bool Transport::is_open() const noexcept {
  char byte = 0;
  const ssize_t got = recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && would_block());
}

void Transport::shut_down() const noexcept { ::shutdown(descriptor_, SHUT_RDWR); }

int connect_first(const addrinfo* found, LocalTime deadline, const kit::StopSignal& stop) {
  int left = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) ++left;
  int error = EHOSTUNREACH;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next, --left) {
    // One that swallows everything leaves the others their share of the time.
    const LocalTime now = BootClock::now(), share = now + (deadline - now) / left;
    Socket socket(each->ai_family);
    set_up(socket.get());
    error = connect_to(socket, each->ai_addr, each->ai_addrlen, share, stop);
    if (error == 0) return socket.release();
    if (stop.is_requested()) break;
  }
  fail("cannot connect: " + reason(error));
}

int connect_socket(const Address& address, LocalTime deadline, const kit::StopSignal& stop) {
  if (address.is_socket()) return connect_path(address.host, deadline, stop);
  return connect_first(resolve(address).get(), deadline, stop);
}

}  // namespace simba::redis
