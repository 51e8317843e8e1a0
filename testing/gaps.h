#pragma once

#include <functional>

namespace simba::testing {

// Where others can come in between: wherever the thread that has made this holds no lock and is
// about to take one. There `come_in` runs; places are counted from 0. So a test tries every order
// of the critical sections, and none by luck. The linker sends the locks of a test through here
// (simba_see_locks).
//
// Threads: that one, which has one of these at a time.
class Gaps {
 public:
  explicit Gaps(std::function<void(int place)> come_in);
  ~Gaps();
  Gaps(const Gaps&) = delete;
  Gaps& operator=(const Gaps&) = delete;

  int count() const { return count_; }

  // Of the thread that takes or gives back a lock.
  static void before_a_lock();
  static void locked(int change);

 private:
  const std::function<void(int)> come_in_;
  int count_ = 0;
  int held_ = 0;
  bool is_inside_ = false;
};

}  // namespace simba::testing
