#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "simba/options.h"

namespace simba::torture {

// What the processes of one run have in common, and where their files are.
struct Plan {
  std::filesystem::path directory;  // private to the run
  std::string prefix;               // of the mutexes' names
  int clients = 4, mutexes = 2;
  milliseconds ttl{1'000}, transition{500};
  std::chrono::seconds length{10};  // of the faults
  std::chrono::seconds slack{3};    // of the bound
  std::uint64_t seed = 1;
  nanoseconds look_every = std::chrono::milliseconds(2);  // an owner, at its lease
  double least_rest = 0.1, most_rest = 0.4;               // between two faults, in leases
  int survivors = 0;   // so many, the first, are not killed as long as there are faults
  bool leaks = false;  // the first client does, on purpose

  milliseconds lease() const { return ttl + transition; }
  // After the faults every mutex has an owner: a dead owner's lease, one more that was under way
  // when they ended, and time to connect anew.
  nanoseconds bound() const { return 2 * nanoseconds{lease()} + slack; }
  ContendOptions options() const;
  std::string mutex(int index) const { return prefix + std::to_string(index); }
  std::filesystem::path notebook(int client, int mutex) const;
  std::filesystem::path registers(int mutex) const;
  std::filesystem::path calls(int client) const;
  std::filesystem::path errors(int client) const;
  std::filesystem::path pulse(int client) const;
  std::filesystem::path log(int client) const;
  // Between two looks: such that a notebook is large enough for the whole run.
  nanoseconds pace() const;

  void save() const;  // to the directory
  static Plan load(const std::filesystem::path& directory);
};

}  // namespace simba::torture
