#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>

#include "simba/log.h"

namespace simba::kit {

// Where something that several stores share says its lines: to the store that has had it longest of
// those that are left, so that a line is said once, and never to a store that is gone.
//
// Threads: any. No lock is held while a sink runs; a sink must not end its own store.
class SharedLog {
 public:
  // Its end waits for a call of the sink that runs; there is none afterwards.
  class Ticket;

  // The sinks of it, as one.
  static LogSink sink_of(std::shared_ptr<SharedLog> log);
  // Null where the sink is empty.
  static std::shared_ptr<Ticket> add(std::shared_ptr<SharedLog> log, LogSink sink);

  void operator()(LogLevel level, std::string_view line);

 private:
  struct Entry {
    LogSink sink;
    int running = 0;
  };

  std::mutex guard_;
  std::condition_variable done_;
  std::list<Entry> entries_;  // guarded by guard_, but for the call of a sink
};

// Options of a store, with that log.
template <class Options>
Options with_log(Options options, const std::shared_ptr<SharedLog>& log) {
  options.log = SharedLog::sink_of(log);
  return options;
}

}  // namespace simba::kit
