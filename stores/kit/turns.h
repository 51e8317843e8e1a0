#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

#include "simba/error.h"
#include "simba/time.h"
#include "stores/kit/source.h"

namespace simba::kit {

// Who reads a source: its reader, or a thread that waits for one hint and reads in its place, so
// that one thread less is woken. The hints are the same, and reach everybody.
//
//   reader reads --- listen(): it stands aside ---> a waiter reads, and leaves, and comes again
//        ^------ somebody needs the reader, or nobody came for a moment, or the source is lost
//
// Threads: the reader's calls one, the others any.
class Turns {
 public:
  // Throws Error (kUnreachable) where there is no file descriptor left.
  Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns();

  // A watch needs the reader, or does not any more.
  void need_reader(bool needed);
  // As Watch::listen.
  bool listen(int interrupt, LocalTime until, const Source::Hint& hint);

  // The reader's. While this lives, the source may be lent.
  class Lent {
   public:
    Lent(Turns& turns, LendableSource& source, const StopSignal& stop);
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent();
    // Reads once, when it is the reader's turn, or returns for the stop. Throws Error when the
    // source is lost, whoever noticed.
    void read(const Source::Hint& hint);

   private:
    Turns& turns_;
    const StopSignal& stop_;
  };

 private:
  enum class Who { kNobody, kReader, kWaiter };

  bool begin_turn(const StopSignal& stop);
  enum class Is { kThere, kLost };
  void end_turn(Is source);
  bool begin_to_listen(std::unique_lock<std::mutex>& lock);
  void end_to_listen(const std::optional<Error>& trouble);
  class Listening;
  void nudge();

  const int nudge_;      // readable: the reader has something to look at
  const int interrupt_;  // readable when the nudge or the reader's stop is
  std::mutex guard_;
  bool nudged_ = false;  // guarded by guard_
  std::condition_variable changed_;
  LendableSource* source_ = nullptr;  // guarded by guard_
  Who reads_ = Who::kNobody;          // guarded by guard_
  bool aside_ = false;                // guarded by guard_; the reader leaves it to waiters
  std::size_t needing_ = 0;           // guarded by guard_
  LocalTime left_{};                  // guarded by guard_; by the last who listened
  std::optional<Error> lost_;         // guarded by guard_; what somebody met who listened
};

}  // namespace simba::kit
