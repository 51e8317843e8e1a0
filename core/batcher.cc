#include "core/batcher.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace simba::core {
namespace {

// A job is large: each is moved once.
void sort(std::vector<Job>& jobs) {
  std::vector<Job*> order;
  order.reserve(jobs.size());
  for (Job& job : jobs) order.push_back(&job);
  std::sort(order.begin(), order.end(),
            [](const Job* a, const Job* b) { return a->mutex < b->mutex; });
  std::vector<Job> sorted;
  sorted.reserve(jobs.size());
  for (Job* job : order) sorted.push_back(std::move(*job));
  jobs = std::move(sorted);
}

void seal(Batch& batch) {
  if (batch.jobs.size() > 1) sort(batch.jobs);
  batch.deadline = LocalTime::max();
  for (const Job& job : batch.jobs) batch.deadline = std::min(batch.deadline, job.deadline);
}

// Nobody waits for what is given back: its time begins when it is sent. Else what stood in line for
// long would spoil the batch, whose deadline is that of its earliest member.
void begin_farewell(Job& job, LocalTime now) {
  if (job.who || job.kind != CallKind::kRelease) return;
  job.deadline += now - job.due;
  job.due = now;
}

}  // namespace

void Batcher::add(Job job) {
  Queue& queue = queue_of(lane_of(job.kind));
  const auto [it, is_first] = queue.behind.try_emplace(job.mutex);
  if (is_first) {
    queue.jobs.push_back(std::move(job));
  } else if (job.kind == CallKind::kRenew) {
    it->second.push_front(std::move(job));  // what others have given up can wait
  } else {
    it->second.push_back(std::move(job));
  }
}

std::vector<Job> Batcher::withdraw(const std::string& mutex, const std::string& but) {
  std::vector<Job> out;
  Queue& queue = queue_of(Lane::kAsk);
  const auto behind = queue.behind.find(mutex);
  if (behind == queue.behind.end()) return out;
  std::erase_if(behind->second, [&](Job& job) {
    const bool goes = job.kind == CallKind::kTake && job.wire_id != but;
    if (goes) out.push_back(std::move(job));
    return goes;
  });
  return out;
}

// The job of this mutex has left the queue: the one behind it, if there is one, takes its place.
std::optional<Job> Batcher::next_of(Queue& queue, const std::string& mutex) {
  const auto behind = queue.behind.find(mutex);
  if (behind->second.empty()) {
    queue.behind.erase(behind);
    return std::nullopt;
  }
  std::optional<Job> next = std::move(behind->second.front());
  behind->second.pop_front();
  return next;
}

bool Batcher::may_go(const Queue& queue, LocalTime now) {
  return !queue.jobs.empty() && may_go_at(queue) <= now;
}

// At once when nothing is under way that is worth waiting for; else when the oldest job has waited
// long enough and there is room for one more call.
LocalTime Batcher::may_go_at(const Queue& queue) {
  if (queue.under_way.empty()) return LocalTime::min();
  const std::size_t calls = queue.under_way.size();
  if (calls >= kMostCallsPerLane) return LocalTime::max();
  std::array<LocalTime, kMostCallsPerLane> overdue{};
  for (std::size_t i = 0; i < calls; ++i) overdue[i] = queue.under_way[i].second;
  std::sort(overdue.begin(), overdue.begin() + calls, std::greater<>{});
  const LocalTime all_hang = overdue.front();
  const bool full = calls >= kCallsPerLane;
  const LocalTime room = full ? overdue[kCallsPerLane - 1] : LocalTime::min();
  return std::min(all_hang, std::max(room, queue.jobs.front().due + kPatience));
}

std::optional<Batch> Batcher::next(LocalTime now) {
  if (!halves_.empty()) {
    Batch half = std::move(halves_.front());
    halves_.pop_front();
    return sent(std::move(half));
  }
  for (const Lane lane : {Lane::kKeep, Lane::kAsk}) {
    Queue& queue = queue_of(lane);
    if (may_go(queue, now)) return sent(gather(queue, lane, now));
  }
  return std::nullopt;
}

Batch Batcher::sent(Batch batch) {
  batch.number = ++last_number_;
  queue_of(batch.lane).under_way.emplace_back(batch.number, batch.deadline + kOverdue);
  return batch;
}

void Batcher::back(const Batch& batch) {
  std::erase_if(queue_of(batch.lane).under_way,
                [&](const auto& call) { return call.first == batch.number; });
}

// The oldest job, and with it what is of its kind: one per mutex, nobody that has to go alone.
Batch Batcher::gather(Queue& queue, Lane lane, LocalTime now) {
  std::deque<Job>& jobs = queue.jobs;
  Batch batch{lane, jobs.front().kind, {}, {}, 0};
  const bool alone = !alone_.empty() && alone_.contains(jobs.front().mutex);
  const std::size_t limit = alone ? 1 : queue.limit;
  batch.jobs.push_back(std::move(jobs.front()));
  jobs.pop_front();
  std::vector<Job> passed_by;
  while (!jobs.empty() && batch.jobs.size() < limit) {
    const bool joins = jobs.front().kind == batch.kind && !alone_.contains(jobs.front().mutex);
    (joins ? batch.jobs : passed_by).push_back(std::move(jobs.front()));
    jobs.pop_front();
  }
  std::move(passed_by.rbegin(), passed_by.rend(), std::front_inserter(jobs));
  for (const Job& job : batch.jobs) {
    if (std::optional<Job> next = next_of(queue, job.mutex)) jobs.push_back(std::move(*next));
  }
  for (Job& job : batch.jobs) begin_farewell(job, now);
  seal(batch);
  return batch;
}

LocalTime Batcher::next_timer() const {
  LocalTime soonest = LocalTime::max();
  for (const Queue& queue : queues_) {
    if (!queue.jobs.empty()) soonest = std::min(soonest, may_go_at(queue));
  }
  return soonest;
}

void Batcher::succeeded(const Batch& batch) {
  back(batch);
  Queue& queue = queue_of(batch.lane);
  if (batch.jobs.size() >= queue.limit) queue.limit = std::min(queue.limit * 2, kLargest);
}

void Batcher::failed(const Batch& batch) {
  back(batch);
  Queue& queue = queue_of(batch.lane);
  if (batch.jobs.size() > 1) queue.limit = std::min(queue.limit, batch.jobs.size() / 2);
}

void Batcher::blocked(const std::string& mutex) {
  constexpr std::size_t kMostAlone = 1000;  // nobody may ever ask for some of them again
  if (alone_.size() >= kMostAlone) alone_.clear();
  alone_.insert(mutex);
}

void Batcher::split(Batch batch) {
  failed(batch);
  Batch second{batch.lane, batch.kind, {}, {}, 0};
  const auto middle = batch.jobs.begin() + static_cast<std::ptrdiff_t>(batch.jobs.size() / 2);
  std::move(middle, batch.jobs.end(), std::back_inserter(second.jobs));
  batch.jobs.erase(middle, batch.jobs.end());
  seal(batch);
  seal(second);
  halves_.push_back(std::move(batch));
  halves_.push_back(std::move(second));
}

}  // namespace simba::core
