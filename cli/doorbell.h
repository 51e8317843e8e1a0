#pragma once

namespace simba::cli {

// How other threads wake the one that polls.
//
// Threads: any.
class Doorbell {
 public:
  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  int fd() const { return fd_; }
  void ring() const;
  void hush() const;  // until the next ring

 private:
  const int fd_;
};

}  // namespace simba::cli
