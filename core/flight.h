#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/batcher.h"
#include "core/engine.h"
#include "simba/executor.h"
#include "simba/store.h"

namespace simba::core {

// What a call to the store came to: an answer for each question, or an error of the whole.
struct Outcome {
  Answers answers;
  std::optional<Error> error;

  static Outcome of(Store& store, CallKind kind, std::span<const Claim> claims,
                    LocalTime deadline) noexcept;
  static Outcome of_question(Store& store, std::span<const std::string_view> mutexes,
                             LocalTime deadline) noexcept;
};

// A batch on its way to the store and back. It owns what the claims point at.
class Flight : public StoreCall {
 public:
  Flight(std::shared_ptr<Engine> engine, Batch batch);

  LocalTime deadline() const override { return batch.deadline; }
  void send() override;
  void perform() override;
  void lose() override;
  void complete() override;

  Batch batch;
  LocalTime sent{};
  Outcome outcome;

 private:
  const std::shared_ptr<Engine> engine_;
  std::vector<Claim> claims_;
  std::vector<std::string_view> names_;
};

}  // namespace simba::core
