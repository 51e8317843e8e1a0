#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "simba/store.h"

namespace simba::testing {

// What a case asks directly is asked again until its deadline while it is in trouble, as the
// engine does with its own calls.
class PatientStore : public Store {
 public:
  explicit PatientStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  const StoreTraits& traits() const override { return store_->traits(); }
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    return insist(deadline, [&] { return store_->contend(claims, deadline); });
  }
  Answers release(std::span<const Claim> claims, LocalTime deadline) override {
    return insist(deadline, [&] { return store_->release(claims, deadline); });
  }
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override {
    return insist(deadline, [&] { return store_->observe(mutexes, deadline); });
  }
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override {
    return insist(deadline, [&] { return store_->evict(mutex, wire_id, token, how, deadline); });
  }
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override {
    return store_->watch(mutex, wire_id, std::move(wake));
  }
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override {
    return insist(deadline, [&] { return store_->list(prefix, after, limit, deadline); });
  }

 private:
  template <typename Call>
  static auto insist(LocalTime deadline, const Call& call) -> decltype(call()) {
    while (true) {
      try {
        auto result = call();
        if (!is_in_trouble(result) || BootClock::now() >= deadline) return result;
      } catch (const Error& error) {
        if (!error.is_transient() || BootClock::now() >= deadline) throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // One of many can be in trouble alone.
  static bool is_in_trouble(const Answers& answers) {
    return std::any_of(answers.begin(), answers.end(), [](const Answer& answer) {
      const auto* error = std::get_if<Error>(&answer);
      return error && error->is_transient();
    });
  }
  template <typename Other>
  static bool is_in_trouble(const Other&) {
    return false;
  }

  const std::shared_ptr<Store> store_;
};

}  // namespace simba::testing
