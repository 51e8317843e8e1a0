#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "simba/client.h"

namespace simba::core {

// Calls outside of any contention, on the thread that makes them. They tell the hook of nothing: it
// may be gone when a thread of ours makes them. Such a thread has a copy of this and not the
// session: it must not be the last to hold that.
//
// Threads: any.
class OutsideCalls {
 public:
  explicit OutsideCalls(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  // Throws Error (kMisuse) in a forked child.
  Engine& engine() const;
  bool is_forked() const { return engine_->is_forked(); }

  Observation observe(std::string_view mutex, milliseconds timeout) const;
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           milliseconds timeout) const;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    milliseconds timeout) const;

 protected:
  const std::shared_ptr<Engine> engine_;

 private:
  // Trouble that concerns more than this call.
  template <class Call>
  auto heeded(Call call) const {
    try {
      return call(engine().store());
    } catch (const Error& error) {
      if (error.errc() == Errc::kReplaced) engine().store_was_replaced();
      throw;
    }
  }
  LocalTime in(milliseconds timeout) const { return engine().executor().now() + bounded(timeout); }
};

// What a client and all handles made from it share: the engine, closed when the last of them goes.
class Session : public OutsideCalls {
 public:
  Session(std::shared_ptr<Store> store, ClientOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void log(LogLevel level, const std::string& line) const;
  // A call outside of any contention for a user, who is told of it.
  template <class Call>
  auto told(Call call) const {
    const LocalTime sent = engine().executor().now();
    try {
      auto got = call(*this);
      note_call(sent, nullptr);
      return got;
    } catch (const Error& error) {
      note_call(sent, &error);
      throw;
    }
  }

  const ClientOptions options;

 private:
  void note_call(LocalTime sent, const Error* error) const;
};

}  // namespace simba::core
