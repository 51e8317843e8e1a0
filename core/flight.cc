#include "core/flight.h"

#include <exception>
#include <string>
#include <utility>

namespace simba::core {
namespace {

template <class Ask>
Outcome outcome_of(std::size_t questions, const Ask& ask) noexcept {
  Outcome outcome;
  try {
    outcome.answers = ask();
    const std::size_t answers = outcome.answers.size();
    if (answers != questions) {
      outcome.error.emplace(Errc::kCorrupt, "the store gave " + std::to_string(answers) +
                                                " answers to " + std::to_string(questions) +
                                                " questions");
    }
  } catch (const Error& trouble) {
    outcome.error = trouble;
  } catch (const std::exception& trouble) {
    outcome.error.emplace(Errc::kCorrupt, trouble.what());
  } catch (...) {
    outcome.error.emplace(Errc::kCorrupt, "the store threw something that is no std::exception");
  }
  return outcome;
}

}  // namespace

Outcome Outcome::of(Store& store, CallKind kind, std::span<const Claim> claims,
                    LocalTime deadline) noexcept {
  return outcome_of(claims.size(), [&] {
    return kind == CallKind::kRelease ? store.release(claims, deadline)
                                      : store.contend(claims, deadline);
  });
}

Outcome Outcome::of_question(Store& store, std::span<const std::string_view> mutexes,
                             LocalTime deadline) noexcept {
  return outcome_of(mutexes.size(), [&] { return store.observe(mutexes, deadline); });
}

Flight::Flight(std::shared_ptr<Engine> engine, Batch its_batch)
    : batch(std::move(its_batch)), engine_(std::move(engine)) {
  for (const Job& job : batch.jobs) {
    if (batch.kind == CallKind::kObserve) {
      names_.emplace_back(job.mutex);
    } else {
      claims_.push_back(job.claim());
    }
  }
}

void Flight::send() { sent = engine_->executor().now(); }

void Flight::perform() {
  Store& store = engine_->store();
  outcome = batch.kind == CallKind::kObserve
                ? Outcome::of_question(store, names_, batch.deadline)
                : Outcome::of(store, batch.kind, claims_, batch.deadline);
}

void Flight::lose() {
  static const Error no_answer(Errc::kTimeout, "no answer within the deadline");
  outcome.answers.clear();
  outcome.error = no_answer;
}

void Flight::complete() { engine_->completed(*this); }

}  // namespace simba::core
