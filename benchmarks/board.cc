#include "benchmarks/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace simba::bench {

// A file of zeros is a board nobody wrote on yet.
Board::Board(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* mapped = MAP_FAILED;
  if (descriptor >= 0 && ftruncate(descriptor, sizeof(Notes)) == 0) {
    mapped = mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (descriptor >= 0) close(descriptor);
  if (mapped == MAP_FAILED) {
    std::perror("simba_bench: cannot share memory with other processes");
    std::exit(2);
  }
  notes_ = static_cast<Notes*>(mapped);
}

Board::~Board() { munmap(notes_, sizeof(Notes)); }

}  // namespace simba::bench
