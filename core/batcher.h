#pragma once

#include <array>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/contention.h"
#include "simba/executor.h"
#include "simba/store.h"

namespace simba::core {

class Enrolled;

// A claim, a release or a question that is due.
struct Job {
  CallKind kind = CallKind::kTake;
  std::string mutex;
  std::string wire_id;
  Token token = 0;
  Token floor = 0;
  milliseconds ttl{};
  milliseconds transition{};
  LocalTime deadline{};
  LocalTime due{};
  std::shared_ptr<Enrolled> who;  // null: a retired wire id is given back
  std::uint64_t number = 0;

  // Points into it.
  Claim claim() const { return {mutex, wire_id, token, floor, ttl, transition}; }
};

struct Batch {
  Lane lane = Lane::kAsk;
  CallKind kind = CallKind::kTake;
  std::vector<Job> jobs;  // sorted by mutex, each mutex once
  LocalTime deadline{};   // of its earliest member
  std::uint64_t number = 0;
};

// Which due jobs go out together, and when.
//
// What falls due while a call is under way goes out with the next one. A job waits at most 10 ms
// for that, then gets a call of its own beside it. A mutex whose row was blocked is asked alone
// until it answers. After an error batches are half as large, until they succeed again. A call that
// outlives its deadline hangs in the driver: others no longer wait for it.
//
// Threads: none of its own; calls must be serialized.
class Batcher {
 public:
  static constexpr std::size_t kLargest = 1000;
  static constexpr std::size_t kCallsPerLane = 4;
  static constexpr std::size_t kMostCallsPerLane = 16;  // with those that hang
  static constexpr milliseconds kOverdue{250};
  static constexpr milliseconds kPatience{10};

  void add(Job job);
  // Takes out the takes that wait behind another job of their mutex, but for this wire id's.
  std::vector<Job> withdraw(const std::string& mutex, const std::string& but);
  // The next batch to send now; call until there is none.
  std::optional<Batch> next(LocalTime now);
  // A job that alone must wait no more, or LocalTime::max().
  LocalTime next_timer() const;

  void succeeded(const Batch& batch);
  void failed(const Batch& batch);
  // The halves of a batch that one member may have spoilt go out again, at once.
  void split(Batch batch);
  void blocked(const std::string& mutex);
  void unblocked(const std::string& mutex) {
    if (!alone_.empty()) alone_.erase(mutex);
  }

 private:
  struct Queue {
    std::deque<Job> jobs;  // each mutex once
    // The mutexes in `jobs`, and who waits for its turn there: thousands who ask for one mutex cost
    // nothing at each batch.
    std::unordered_map<std::string, std::list<Job>> behind;
    std::vector<std::pair<std::uint64_t, LocalTime>> under_way;  // number, when it is overdue
    std::size_t limit = kLargest;
  };
  Batch gather(Queue& queue, Lane lane, LocalTime now);
  static std::optional<Job> next_of(Queue& queue, const std::string& mutex);
  Batch sent(Batch batch);
  void back(const Batch& batch);
  static bool may_go(const Queue& queue, LocalTime now);
  static LocalTime may_go_at(const Queue& queue);
  Queue& queue_of(Lane lane) { return queues_.at(static_cast<std::size_t>(lane)); }

  std::array<Queue, 2> queues_;
  std::deque<Batch> halves_;
  std::set<std::string> alone_;
  std::uint64_t last_number_ = 0;
};

inline Lane lane_of(CallKind kind) {
  return kind == CallKind::kRenew || kind == CallKind::kRelease ? Lane::kKeep : Lane::kAsk;
}

}  // namespace simba::core
