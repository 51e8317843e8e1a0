#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/flight.h"
#include "simba/log.h"

namespace simba::core {

struct LogLine {
  LogLevel level;
  std::string text;
};

// What has to happen outside the engine's lock, in this order.
struct Engine::Outbox {
  std::vector<std::shared_ptr<Group>> bereft;  // the first in line left: the next one is woken
  std::vector<std::shared_ptr<TermRecord>> revoked;
  std::vector<std::shared_ptr<Enrolled>> unwatched;  // want a watch under their new wire id
  std::vector<std::shared_ptr<Flight>> flights;
  std::vector<std::shared_ptr<Enrolled>> strands;
  std::vector<std::shared_ptr<Watch>> dropped;
  std::vector<std::shared_ptr<Enrolled>> poked;
  // Whoever was the last to hold them: what users gave them is destroyed outside too.
  std::vector<std::shared_ptr<Enrolled>> let_go;
  std::vector<OwnedEvent> events;
  std::vector<LogLine> lines;

  bool tells_later = false;          // a thread of callbacks has to be asked for
  const TermRecord* own = nullptr;   // the caller ends it: its stop request runs here
  bool on_dispatcher = false;        // user code may not
  const Enrolled* caller = nullptr;  // its thread holds it and looks for itself: not poked
  LocalTime now{};
};

// One step: something is decided under the lock, what is due is launched, the rest happens outside.
template <class Decide>
void Engine::step(Decide decide) {
  Outbox out;
  {
    const std::lock_guard lock(guard_);
    out.now = executor_->now();
    decide(out);
    launch(out);
  }
  flush(out);
}

}  // namespace simba::core
