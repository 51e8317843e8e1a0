#pragma once

#include <memory>
#include <string_view>

#include "simba/store.h"
#include "torture/call_log.h"
#include "torture/error_log.h"

namespace simba::torture {

// As a name stands in a log.
std::uint64_t hash_of(std::string_view name);

// A store that notes down each claim of each call, before it is sent and when it is answered, and
// each error, and changes nothing of any. list() is not noted: no contender asks it.
//
// Threads: as the store.
class RecordingStore : public Store {
 public:
  RecordingStore(std::shared_ptr<Store> store, std::shared_ptr<CallLog> log,
                 std::shared_ptr<ErrorLog> errors)
      : store_(std::move(store)), log_(std::move(log)), errors_(std::move(errors)) {}

  const StoreTraits& traits() const override { return store_->traits(); }
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override;
  Answers release(std::span<const Claim> claims, LocalTime deadline) override;
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override;
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override;
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override {
    return store_->list(prefix, after, limit, deadline);
  }
  void check_mutex(std::string_view mutex) const override { store_->check_mutex(mutex); }
  void check_label(std::string_view label) const override { store_->check_label(label); }

 private:
  const std::shared_ptr<Store> store_;
  const std::shared_ptr<CallLog> log_;
  const std::shared_ptr<ErrorLog> errors_;
};

}  // namespace simba::torture
