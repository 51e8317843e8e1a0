#include "torture/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace simba::torture {

SharedFile::SharedFile(const std::filesystem::path& file, std::size_t size) : size_(size) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), file.string());
  if (::ftruncate(descriptor, static_cast<off_t>(size)) == 0) {
    memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  } else {
    memory_ = MAP_FAILED;
  }
  const int error = errno;
  ::close(descriptor);
  if (memory_ == MAP_FAILED) throw std::system_error(error, std::generic_category(), file.string());
}

SharedFile::~SharedFile() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

}  // namespace simba::torture
