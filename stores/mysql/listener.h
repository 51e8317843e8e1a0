#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "simba/store.h"
#include "stores/kit/reader.h"
#include "stores/kit/shared_log.h"
#include "stores/kit/watchers.h"
#include "stores/mysql/bell.h"
#include "stores/mysql/endpoint.h"

namespace simba::mysql {

// Who waits for which mutex, and the one connection of this process that waits for them.
//
//   release here ------------------------> wake of the same mutex, on the releasing thread
//   release in another process: the bell -> reader thread -> wake of all
//
// The reader starts with the first watch. Stores of one process on the same table of the same
// server share it.
//
// Threads: any. In a forked child nothing here is touched.
class Listener {
 public:
  // The one of this process for such an endpoint; a new one where the user brings the connections.
  // `log` is where the endpoint says its lines, and from then on those of the shared one.
  static std::shared_ptr<Listener> of(const std::shared_ptr<Endpoint>& endpoint,
                                      const std::shared_ptr<kit::SharedLog>& log);

  Listener(std::shared_ptr<Endpoint> endpoint, std::shared_ptr<kit::SharedLog> log)
      : endpoint_(std::move(endpoint)), log_(std::move(log)) {}

  // Null where no thread is left for it.
  std::unique_ptr<Watch> add(std::string_view mutex, std::function<void()> wake);
  // Where its own lines are said.
  const std::shared_ptr<kit::SharedLog>& log() const { return log_; }
  void wake(std::string_view mutex) { watchers_->wake(mutex); }
  // The connection of this process that waits; 0: none.
  std::uint64_t connection_id() const { return bells_->connection_id; }

 private:
  class Heard;
  bool start();

  const std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<kit::SharedLog> log_;
  const std::shared_ptr<kit::Watchers> watchers_ = std::make_shared<kit::Watchers>();
  const std::shared_ptr<Bells> bells_ = std::make_shared<Bells>();
  std::mutex mutex_;
  std::shared_ptr<kit::Reader> reader_;  // guarded by mutex_
};

}  // namespace simba::mysql
