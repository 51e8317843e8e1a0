#pragma once

#include <string>

namespace simba::bench {

// A file that tells those who listen to it when somebody reads it.
//
// Threads: one at a time.
class RawBell {
 public:
  explicit RawBell(const std::string& file);
  RawBell(const RawBell&) = delete;
  RawBell& operator=(const RawBell&) = delete;
  ~RawBell();

  void ring();
  void wait();  // until it was rung since the last wait, or since this was made

 private:
  int file_, notify_;
};

}  // namespace simba::bench
