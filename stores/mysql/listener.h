#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "simba/store.h"
#include "stores/kit/listener.h"
#include "stores/mysql/bell.h"
#include "stores/mysql/endpoint.h"

namespace simba::mysql {

// Who waits for which mutex, and the one connection of this process that waits at their bells: one
// that rings wakes all. Stores of one process on the same table of the same server share it.
//
// Threads: any. In a forked child nothing here is touched.
class Listener {
 public:
  // The one of this process for such an endpoint; a new one where the user brings the connections.
  // `log` is where the endpoint says its lines, and from then on those of the shared one.
  static std::shared_ptr<Listener> of(const std::shared_ptr<Endpoint>& endpoint,
                                      const std::shared_ptr<kit::SharedLog>& log);

  Listener(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<kit::SharedLog>& log);

  // Null where no thread is left for it.
  std::unique_ptr<Watch> add(std::string_view mutex, std::function<void()> wake);
  const std::shared_ptr<kit::SharedLog>& log() const { return listener_.log(); }
  void wake(std::string_view mutex) { listener_.wake(mutex); }
  // See Bells.
  void note(std::string_view mutex, std::string_view wire_id, const Observation& seen) {
    bells_->note(mutex, wire_id, seen);
  }
  // The connection of this process that waits; 0: none.
  std::uint64_t connection_id() const { return bells_->connection_id; }

 private:
  class Rung;

  const std::shared_ptr<Bells> bells_ = std::make_shared<Bells>();
  kit::Listener listener_;
};

}  // namespace simba::mysql
