#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "simba/error.h"
#include "stores/kit/backoff.h"
#include "stores/kit/source.h"
#include "stores/kit/turns.h"
#include "stores/kit/worker.h"

namespace simba::kit {

// Reads a source and opens it again when it is lost, with a growing pause in between: the one place
// of a store where something is tried again. It passes hints on and does nothing else.
//
// A hint for "any" follows each opening: what changed in between was not heard.
//
// Threads: any.
class Reader {
 public:
  // Null: this server cannot push, and the reader ends. Throws Error where it may work later.
  using Open = std::function<std::unique_ptr<Source>(const StopSignal& stop)>;

  struct Parts {
    std::string name;  // of the thread
    Open open;
    Source::Hint hint;
    std::function<void(const Error& error)> on_trouble;  // once per outage
    Backoff backoff{milliseconds{50}, milliseconds{2'000}};
  };

  explicit Reader(Parts parts);

  // False while hints may be missing.
  bool is_live() const noexcept { return shared_->live; }

  // As Watch::listen, see Turns.
  bool listen(int interrupt, LocalTime until) {
    return shared_->turns.listen(interrupt, until, shared_->parts.hint);
  }
  // Whether one watch needs the reader, as it does at first. Threads: one at a time.
  class Need {
   public:
    explicit Need(Reader& reader) : turns_(&reader.shared_->turns) { turns_->need_reader(true); }
    Need(const Need&) = delete;
    Need& operator=(const Need&) = delete;
    ~Need() { set(false); }
    void set(bool needed) {
      if (std::exchange(needed_, needed) != needed) turns_->need_reader(needed);
    }
    // In a forked child: it is the parent's.
    void forget() { needed_ = false; }

   private:
    Turns* const turns_;
    bool needed_ = true;
  };

 private:
  struct Shared {
    explicit Shared(Parts its_parts) : parts(std::move(its_parts)) {}
    Parts parts;  // of the thread alone, but for the hint, which any calls and none changes
    std::atomic<bool> live{false};
    Turns turns;
  };
  static void run(Shared& shared, const StopSignal& stop);
  static bool read(Shared& shared, const StopSignal& stop);
  static void read_on(Shared& shared, Source& source, const StopSignal& stop);

  const std::shared_ptr<Shared> shared_;
  const Worker worker_;
};

}  // namespace simba::kit
