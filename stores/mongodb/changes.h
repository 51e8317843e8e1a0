#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "simba/store.h"
#include "stores/kit/reader.h"
#include "stores/kit/shared_log.h"
#include "stores/kit/watchers.h"
#include "stores/mongodb/endpoint.h"

namespace simba::mongodb {

// Who waits for which mutex, and the one change stream of this process that hears for them.
//
//   release here ----------------------> wake of the same mutex, on the releasing thread
//   release elsewhere: change stream ---> reader thread -> wake of the mutex it names
//
// The reader starts with the first watch. Stores of one process on the same collection of the same
// servers share it. A standalone server has no change streams: waiters poll, which is said once.
//
// Threads: any. In a forked child nothing here is touched.
class Changes : public std::enable_shared_from_this<Changes> {
 public:
  // The one of this process for such an endpoint; a new one where the user brings the pool.
  // `log` is where the endpoint says its lines, and from then on those of the shared one.
  static std::shared_ptr<Changes> of(const std::shared_ptr<Endpoint>& endpoint,
                                     const std::shared_ptr<kit::SharedLog>& log);

  Changes(std::shared_ptr<Endpoint> endpoint, std::shared_ptr<kit::SharedLog> log)
      : endpoint_(std::move(endpoint)), log_(std::move(log)) {}

  // Null where no thread is left for it.
  std::unique_ptr<Watch> add(std::string_view mutex, std::function<void()> wake);
  // Where its own lines are said.
  const std::shared_ptr<kit::SharedLog>& log() const { return log_; }
  void wake(std::string_view mutex) { watchers_->wake(mutex); }

 private:
  class Heard;
  bool start();

  const std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<kit::SharedLog> log_;
  const std::shared_ptr<kit::Watchers> watchers_ = std::make_shared<kit::Watchers>();
  std::mutex mutex_;
  std::shared_ptr<kit::Reader> reader_;  // guarded by mutex_
};

}  // namespace simba::mongodb
