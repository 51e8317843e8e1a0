#pragma once

#include <string>
#include <vector>

#include "simba/client.h"

namespace simba::torture {

// Planted in a client, so that a soak is seen to notice it: with each drop 64 KiB of memory, a
// descriptor, a thread and a row of the store.
//
// Threads: one.
class Leak {
 public:
  Leak(const Client& client, std::string prefix);  // of the rows' names

  void drip();

 private:
  const Client& client_;
  const std::string prefix_;
  std::vector<std::vector<char>> memory_;
};

}  // namespace simba::torture
