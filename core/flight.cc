#include "core/flight.h"

#include <exception>
#include <utility>

namespace simba::core {

Flight::Flight(std::shared_ptr<Engine> engine, Batch its_batch, Path its_path)
    : batch(std::move(its_batch)), path(its_path), engine_(std::move(engine)) {
  for (const Job& job : batch.jobs) {
    if (batch.kind == CallKind::kObserve) {
      names_.emplace_back(job.mutex);
      continue;
    }
    claims_.push_back({job.mutex, job.wire_id, job.token, job.floor, job.ttl, job.transition});
  }
}

void Flight::send() { sent = engine_->executor().now(); }

void Flight::perform() {
  answers.clear();
  error.reset();
  try {
    answers = ask_store();
    if (answers.size() != batch.jobs.size()) {
      error.emplace(Errc::kCorrupt, "the store gave " + std::to_string(answers.size()) +
                                        " answers to " + std::to_string(batch.jobs.size()) +
                                        " questions");
    }
  } catch (const Error& trouble) {
    error = trouble;
  } catch (const std::exception& trouble) {
    error.emplace(Errc::kCorrupt, trouble.what());
  }
}

Answers Flight::ask_store() const {
  Store& store = engine_->store();
  switch (batch.kind) {
    case CallKind::kObserve:
      return store.observe(names_, batch.deadline);
    case CallKind::kRelease:
      return store.release(claims_, batch.deadline);
    case CallKind::kTake:
    case CallKind::kRenew:
      break;
  }
  return store.contend(claims_, batch.deadline);
}

void Flight::lose() {
  answers.clear();
  error.emplace(Errc::kTimeout, "no answer within the deadline");
}

void Flight::complete() { engine_->completed(*this); }

}  // namespace simba::core
