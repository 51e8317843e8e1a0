#include "stores/mysql/leash.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>

// Exported by the library, and in no header of it.
extern "C" int ma_pvio_register_callback(my_bool is_added,
                                         void (*callback)(int mode, MYSQL* handle,
                                                          const unsigned char* bytes,
                                                          std::size_t size));

namespace simba::mysql {

thread_local Leash* Leash::innermost = nullptr;

void set_non_blocking(int socket) noexcept {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

Leash::Leash(MYSQL* handle, LocalTime deadline, std::size_t most_bytes)
    : handle_(handle), deadline_(deadline), left_(most_bytes), outer_(innermost) {
  static const int looks = ma_pvio_register_callback(1, look);
  static_cast<void>(looks);
  innermost = this;
}

Leash::~Leash() { innermost = outer_; }

Leash::End Leash::end_of(const MYSQL* handle) noexcept {
  return innermost != nullptr && innermost->handle_ == handle ? innermost->end_ : End::kNone;
}

// Called by libmariadb after each read (mode 0) and write, of any connection of the process. A read
// that failed has no size.
void Leash::look(int mode, MYSQL* handle, const unsigned char*, std::size_t size) {
  if (mode != 0 || innermost == nullptr || innermost->handle_ != handle) return;
  if (innermost->lets_no_read_wait_) set_non_blocking(mysql_get_socket(handle));
  if (static_cast<std::ptrdiff_t>(size) > 0) innermost->count(size);
}

// In both directions: of one that is only shut for reading the kernel goes on to take what comes.
void Leash::count(std::size_t size) noexcept {
  if (end_ != End::kNone) return;
  left_ -= std::min(left_, size);
  if (left_ == 0) end_ = End::kTooLong;
  if (BootClock::now() >= deadline_) end_ = End::kLate;
  if (end_ != End::kNone) shutdown(mysql_get_socket(handle_), SHUT_RDWR);
}

}  // namespace simba::mysql
