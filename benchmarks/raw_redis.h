#pragma once

#include <cstdint>
#include <string>

struct redisContext;

namespace simba::bench {

// The driver alone, doing the least that a lock on Redis can be: SET NX PX, and a script that
// deletes the key if it is ours. No token, no message. Trouble ends the program.
//
// Threads: one at a time.
class RawRedis {
 public:
  RawRedis(int port, std::string key);
  RawRedis(const RawRedis&) = delete;
  RawRedis& operator=(const RawRedis&) = delete;
  ~RawRedis();

  bool take(const std::string& owner);
  bool release(const std::string& owner);

  // The scripts of the store itself, with all their words.
  bool take_by_script(const std::string& owner);
  bool release_by_script(const std::string& owner);

  // A hand-over: the release also wakes the first in a queue.
  void listen(const std::string& waiter);
  void wait();  // until it is woken
  bool take_or_queue(const std::string& owner);
  bool release_and_wake(const std::string& owner);
  // The same by the scripts of the store: it also hears what everybody hears.
  enum class Came { kFirst, kAgain };
  bool take_or_queue_by_script(const std::string& owner, Came came);

 private:
  std::string load(const std::string& script);

  redisContext* context_;
  redisContext* bell_ = nullptr;
  const int port_;
  const std::string key_;
  std::string bell_name_;
  std::string release_, queue_, wake_;
  std::string our_take_, our_release_;
};

}  // namespace simba::bench
