#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "simba/store.h"
#include "stores/kit/reader.h"
#include "stores/kit/shared_log.h"
#include "stores/kit/watchers.h"

namespace simba::kit {

// Who waits for which mutex, and the one connection that hears for all of them.
//
//   release here ---------------> wake of the same mutex, on the releasing thread
//   release elsewhere: source ---> reader thread -> wake of the mutex it names
//
// The reader starts with the first watch.
//
// Threads: any. In a forked child nothing here is touched.
class Listener {
 public:
  // `thread` is the reader's name. The log hears once per outage that waiters poll.
  Listener(std::string thread, Reader::Open open, std::shared_ptr<SharedLog> log)
      : thread_(std::move(thread)), open_(std::move(open)), log_(std::move(log)) {}

  // Null where no thread is left for it.
  std::unique_ptr<Watch> add(std::string_view mutex, std::function<void()> wake);
  void wake(std::string_view mutex) { watchers_->wake(mutex); }
  const std::shared_ptr<SharedLog>& log() const { return log_; }

 private:
  class Heard;
  void start();

  const std::string thread_;
  const Reader::Open open_;
  const std::shared_ptr<SharedLog> log_;
  const std::shared_ptr<Watchers> watchers_ = std::make_shared<Watchers>();
  std::mutex mutex_;
  std::shared_ptr<Reader> reader_;  // guarded by mutex_
};

}  // namespace simba::kit
