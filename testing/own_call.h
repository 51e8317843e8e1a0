#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simba/executor.h"
#include "simba/store.h"

namespace simba::testing {

// A claim or a release that a thread of a simulated process makes itself, as the network sees it.
// It owns what it asks: a copy of it may arrive long after the thread has gone on.
class OwnCall : public StoreCall {
 public:
  enum class What : std::uint8_t { kContend, kRelease };

  OwnCall(std::shared_ptr<Store> store, What what, std::span<const Claim> claims,
          LocalTime deadline);

  LocalTime deadline() const override { return deadline_; }
  void send() override {}
  void perform() override;
  void lose() override {
    answers_.clear();
    error_.reset();
  }
  void complete() override { is_over_ = true; }

  bool is_over() const { return is_over_; }
  bool has_failed() const { return error_.has_value(); }
  // Throws the store's Error, or one of its own (kTimeout) where no answer came.
  Answers take_answers();

 private:
  struct Names {
    std::string mutex, wire_id;
  };

  const std::shared_ptr<Store> store_;
  const What what_;
  const LocalTime deadline_;
  std::vector<Names> names_;  // the claims point at them
  std::vector<Claim> claims_;
  Answers answers_;
  std::optional<Error> error_;
  bool is_over_ = false;
};

// The store as the threads of one process have it: while `is_own_thread()`, a claim or a release
// goes by way of `carry`, which returns when it is over.
std::shared_ptr<Store> with_own_calls(std::shared_ptr<Store> store,
                                      std::function<bool()> is_own_thread,
                                      std::function<Answers(std::shared_ptr<OwnCall>)> carry);

}  // namespace simba::testing
