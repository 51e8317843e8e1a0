#pragma once

#include <memory>
#include <string>

#include "core/engine.h"
#include "simba/client.h"

namespace simba::core {

// What a client and all handles made from it share: the engine, closed when the last of them goes.
class Session {
 public:
  Session(std::shared_ptr<Store> store, ClientOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throws Error (kMisuse) in a forked child.
  Engine& engine() const;
  bool is_forked() const { return engine_->is_forked(); }
  void log(LogLevel level, const std::string& line) const;

  const ClientOptions options;

 private:
  const std::shared_ptr<Engine> engine_;
};

}  // namespace simba::core
