#include "cli/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace simba::cli {

Doorbell::Doorbell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Doorbell::~Doorbell() { close(fd_); }

void Doorbell::ring() const { eventfd_write(fd_, 1); }

void Doorbell::hush() const {
  eventfd_t rings = 0;
  eventfd_read(fd_, &rings);
}

}  // namespace simba::cli
