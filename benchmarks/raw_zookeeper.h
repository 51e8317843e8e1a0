#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

struct _zhandle;  // NOLINT(bugprone-reserved-identifier): the driver's name

namespace simba::bench {

// The driver alone, doing what a call of the ZooKeeper store has to do, and nothing besides: the
// same nodes, created, listed and deleted. Trouble ends the program.
//
// Threads: one at a time.
class RawZookeeper {
 public:
  enum class Requests {
    kOneByOne,  // the driver's blocking calls
    kTogether,  // node and list are sent in one flight, as the store does
  };

  // Makes `path`, the container of the nodes, where it is missing.
  RawZookeeper(const std::string& servers, std::string path, Requests requests);
  RawZookeeper(const RawZookeeper&) = delete;
  RawZookeeper& operator=(const RawZookeeper&) = delete;
  ~RawZookeeper();

  // Queues, and says whether it is the first.
  bool join(const std::string& owner);
  // Until it is the first.
  void wait();
  void leave();
  // Watches nodes that are not there, as long as `names`, below the container.
  void watch(const std::vector<std::string>& names);
  std::int64_t token() const { return token_; }

 private:
  bool join_one_by_one(const std::string& owner);
  bool join_together(const std::string& owner);
  bool is_first(const std::vector<std::string>& names);
  std::vector<std::string> list();
  static void on_event(_zhandle* zh, int type, int state, const char* path, void* context);
  void done(int code);

  const std::string path_;
  const Requests requests_;
  _zhandle* zh_ = nullptr;
  std::string node_, before_;
  std::int64_t token_ = 0;

  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<std::string> listed_;  // guarded by guard_
  int answers_ = 0, awaited_ = 0;    // guarded by guard_
  bool connected_ = false;           // guarded by guard_
  bool gone_ = false;                // guarded by guard_: the node before
};

}  // namespace simba::bench
