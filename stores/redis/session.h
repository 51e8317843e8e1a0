#pragma once

#include <memory>
#include <string>

#include "stores/kit/shared_log.h"
#include "stores/redis/courier.h"
#include "stores/redis/listener.h"
#include "stores/redis/requests.h"

namespace simba::redis {

// What stores of one process with the same options share: the connections. Each adds its own log.
//
// Threads: any. In a forked child nothing here is touched.
struct Session {
  explicit Session(const RedisOptions& options);

  // The one of this process for such options.
  static std::shared_ptr<Session> of(const RedisOptions& options);

  const std::shared_ptr<kit::SharedLog> log = std::make_shared<kit::SharedLog>();
  const std::shared_ptr<Courier> courier;
  const std::shared_ptr<Listener> listener;
  const Requests requests;
};

}  // namespace simba::redis
