#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/batcher.h"
#include "core/engine.h"
#include "simba/executor.h"
#include "simba/store.h"

namespace simba::core {

// A batch on its way to the store and back. It owns what the claims point at.
class Flight : public StoreCall {
 public:
  enum class Path : std::uint8_t { kBatcher, kInline };

  Flight(std::shared_ptr<Engine> engine, Batch batch, Path path);

  LocalTime deadline() const override { return batch.deadline; }
  void send() override;
  void perform() override;
  void lose() override;
  void complete() override;

  Batch batch;
  const Path path;
  LocalTime sent{};
  Answers answers;
  std::optional<Error> error;  // of the whole call
  Engine::Inline came_to{};    // of kInline, once it is complete

 private:
  Answers ask_store() const;

  const std::shared_ptr<Engine> engine_;
  std::vector<Claim> claims_;
  std::vector<std::string_view> names_;
};

}  // namespace simba::core
