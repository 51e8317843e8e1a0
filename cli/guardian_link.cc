#include "cli/guardian_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <type_traits>
#include <utility>

namespace simba::cli {
namespace {

template <class Packet>
void put(int fd, const Packet& packet) {
  static_assert(std::is_trivially_copyable_v<Packet>);
  while (::send(fd, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
  }
}

template <class Packet>
GuardianLink::Received<Packet> get(int fd) {
  static_assert(std::is_trivially_copyable_v<Packet>);
  Packet packet;
  ssize_t size = 0;
  do {
    size = ::recv(fd, &packet, sizeof packet, MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size == static_cast<ssize_t>(sizeof packet)) return {packet, false};
  return {std::nullopt, size >= 0 || errno != EAGAIN};
}

}  // namespace

GuardianLink::~GuardianLink() {
  if (fd_ >= 0) ::close(fd_);
}

GuardianLink::GuardianLink(GuardianLink&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

GuardianLink::Pair GuardianLink::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {GuardianLink(ends[0]), GuardianLink(ends[1])};
}

void GuardianLink::send(const Order& order) const { put(fd_, order); }
void GuardianLink::send(const Report& report) const { put(fd_, report); }
GuardianLink::Received<Order> GuardianLink::receive_order() const { return get<Order>(fd_); }
GuardianLink::Received<Report> GuardianLink::receive_report() const { return get<Report>(fd_); }

}  // namespace simba::cli
