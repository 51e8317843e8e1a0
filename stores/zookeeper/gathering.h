#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "stores/zookeeper/errand.h"

namespace simba::zookeeper {

// Where the answers of one call come together, from the driver's thread to the caller's.
//
// Threads: any.
class Gathering : public std::enable_shared_from_this<Gathering> {
 public:
  explicit Gathering(std::size_t count) : answers_(count), missing_(count) {}

  // Who gives the answer of this place, once.
  Errand::Finish place(std::size_t index);
  // All answers there are by the round's deadline; the others are Errors (kTimeout).
  Answers wait(const Round& round);

 private:
  void put(std::size_t index, Answer answer);

  std::mutex guard_;
  std::condition_variable complete_;
  std::vector<std::optional<Answer>> answers_;  // guarded by guard_
  std::size_t missing_;                         // guarded by guard_
};

}  // namespace simba::zookeeper
