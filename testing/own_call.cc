#include "testing/own_call.h"

#include <utility>

namespace simba::testing {
namespace {

using What = OwnCall::What;

class CallingStore : public Store {
 public:
  CallingStore(std::shared_ptr<Store> store, std::function<bool()> is_own_thread,
               std::function<Answers(std::shared_ptr<OwnCall>)> carry)
      : store_(std::move(store)),
        traits_(store_->traits()),
        is_own_thread_(std::move(is_own_thread)),
        carry_(std::move(carry)) {}

  const StoreTraits& traits() const override { return traits_; }

  Answers contend(std::span<const Claim> claims, LocalTime deadline) override {
    if (!is_own_thread_()) return store_->contend(claims, deadline);
    return carry_(std::make_shared<OwnCall>(store_, What::kContend, claims, deadline));
  }

  Answers release(std::span<const Claim> claims, LocalTime deadline) override {
    if (!is_own_thread_()) return store_->release(claims, deadline);
    return carry_(std::make_shared<OwnCall>(store_, What::kRelease, claims, deadline));
  }

  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override {
    return store_->observe(mutexes, deadline);
  }

  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override {
    return store_->evict(mutex, wire_id, token, how, deadline);
  }

  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override {
    return store_->watch(mutex, wire_id, std::move(wake));
  }

  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override {
    return store_->list(prefix, after, limit, deadline);
  }

 private:
  const std::shared_ptr<Store> store_;
  const StoreTraits& traits_;
  const std::function<bool()> is_own_thread_;
  const std::function<Answers(std::shared_ptr<OwnCall>)> carry_;
};

}  // namespace

OwnCall::OwnCall(std::shared_ptr<Store> store, What what, std::span<const Claim> claims,
                 LocalTime deadline)
    : store_(std::move(store)), what_(what), deadline_(deadline) {
  names_.reserve(claims.size());
  for (const Claim& claim : claims) {
    const Names& names =
        names_.emplace_back(Names{std::string(claim.mutex), std::string(claim.wire_id)});
    claims_.push_back(claim);
    claims_.back().mutex = names.mutex;
    claims_.back().wire_id = names.wire_id;
  }
}

void OwnCall::perform() {
  Answers answers;
  std::optional<Error> error;
  try {
    answers = what_ == What::kRelease ? store_->release(claims_, deadline_)
                                      : store_->contend(claims_, deadline_);
  } catch (const Error& trouble) {
    error = trouble;
  }
  if (is_over_) return;
  answers_ = std::move(answers);
  error_ = std::move(error);
}

Answers OwnCall::take_answers() {
  if (error_) throw Error(*error_);
  if (answers_.empty()) throw Error(Errc::kTimeout, "no answer within the deadline");
  return std::move(answers_);
}

std::shared_ptr<Store> with_own_calls(std::shared_ptr<Store> store,
                                      std::function<bool()> is_own_thread,
                                      std::function<Answers(std::shared_ptr<OwnCall>)> carry) {
  return std::make_shared<CallingStore>(std::move(store), std::move(is_own_thread),
                                        std::move(carry));
}

}  // namespace simba::testing
