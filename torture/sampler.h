#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torture/crowd.h"
#include "torture/drift.h"
#include "torture/plan.h"
#include "torture/pulse.h"
#include "torture/target.h"

namespace simba::torture {

// Measures the clients that live as long as the run, and the store.
//
//   heap         of it in use, as the client says
//   memory       private pages, as the kernel says: not the files in which clients take notes
//   threads, descriptors
//   and what the store has a number of
//
// Threads: one.
class Sampler {
 public:
  Sampler(const Plan& plan, const Target& target);

  void sample(const Crowd& crowd);
  std::vector<Series> series() const;  // by name, then by client

 private:
  void sample_client(int client, pid_t pid, LocalTime now);
  void add(Series about, LocalTime now, std::optional<double> value);

  const Target& target_;
  std::vector<Pulse> pulses_;
  std::vector<Series> series_;
};

}  // namespace simba::torture
