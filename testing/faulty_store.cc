#include "testing/faulty_store.h"

#include <algorithm>
#include <utility>

namespace simba::testing {
namespace {

using What = Asked::What;

Asked recorded(What what, std::span<const Claim> claims, LocalTime deadline) {
  Asked asked{what, {}, deadline};
  for (const Claim& claim : claims) {
    asked.claims.push_back({std::string(claim.mutex), std::string(claim.wire_id), claim.token,
                            claim.floor, claim.ttl, claim.transition});
  }
  return asked;
}

template <typename Item>
std::vector<Item> picked(std::span<const Item> items, const std::vector<std::size_t>& places) {
  std::vector<Item> out;
  out.reserve(places.size());
  for (const std::size_t place : places) out.push_back(items[place]);
  return out;
}

}  // namespace

bool Asked::is_take() const {
  return what == What::kContend && !claims.empty() && claims.front().token == 0;
}

bool Asked::is_renewal() const {
  return what == What::kContend && !claims.empty() && claims.front().token != 0;
}

// A hint passes through here, so that it can be lost on the way.
class FaultyStore::HintTicket : public Watch {
 public:
  HintTicket(std::shared_ptr<Hints> hints, std::string_view mutex, std::function<void()> wake)
      : hints_(std::move(hints)) {
    const std::lock_guard lock(hints_->guard);
    at_ = hints_->wakes.emplace(std::string(mutex), std::move(wake));
  }
  ~HintTicket() override {
    inner_.reset();
    const std::lock_guard lock(hints_->guard);
    hints_->wakes.erase(at_);
  }
  void set_inner(std::unique_ptr<Watch> inner) { inner_ = std::move(inner); }
  bool is_live() const override { return !hints_->ended && (!inner_ || inner_->is_live()); }

 private:
  const std::shared_ptr<Hints> hints_;
  std::multimap<std::string, std::function<void()>, std::less<>>::iterator at_;
  std::unique_ptr<Watch> inner_;
};

FaultyStore::FaultyStore(std::shared_ptr<Store> store)
    : store_(std::move(store)), traits_(store_->traits()) {}

// --- trouble ---

void FaultyStore::fail_before(Error error, std::size_t times) {
  const std::lock_guard lock(guard_);
  faults_.insert(faults_.end(), times, Fault{std::move(error), false});
}

void FaultyStore::fail_after(Error error, std::size_t times) {
  const std::lock_guard lock(guard_);
  faults_.insert(faults_.end(), times, Fault{std::move(error), true});
}

void FaultyStore::go_down(Error error) {
  const std::lock_guard lock(guard_);
  down_ = std::move(error);
}

void FaultyStore::heal() {
  const std::lock_guard lock(guard_);
  down_.reset();
  faults_.clear();
}

void FaultyStore::block(std::string mutex) {
  const std::lock_guard lock(guard_);
  blocked_.insert(std::move(mutex));
}

void FaultyStore::unblock(const std::string& mutex) {
  const std::lock_guard lock(guard_);
  blocked_.erase(mutex);
}

void FaultyStore::spoil(std::string mutex, Error error) {
  const std::lock_guard lock(guard_);
  spoilt_.insert_or_assign(std::move(mutex), std::move(error));
}

void FaultyStore::spoil_whole_call(std::string mutex, Error error) {
  const std::lock_guard lock(guard_);
  poisonous_.insert_or_assign(std::move(mutex), std::move(error));
}

void FaultyStore::unspoil(const std::string& mutex) {
  const std::lock_guard lock(guard_);
  spoilt_.erase(mutex);
  poisonous_.erase(mutex);
}

void FaultyStore::alter(std::function<void(const Asked::Claimed&, Answer&)> last_word) {
  const std::lock_guard lock(guard_);
  last_word_ = std::move(last_word);
}

void FaultyStore::drop_hints() {
  const std::lock_guard lock(hints_->guard);
  hints_->dropped = true;
}

void FaultyStore::end_hints() { hints_->ended = true; }

void FaultyStore::cannot_push() { pushes_ = false; }

void FaultyStore::hint(std::string_view mutex) {
  std::vector<std::function<void()>> wakes;
  {
    const std::lock_guard lock(hints_->guard);
    const auto [from, to] = hints_->wakes.equal_range(mutex);
    for (auto it = from; it != to; ++it) wakes.push_back(it->second);
  }
  for (const auto& wake : wakes) wake();
}

void FaultyStore::set_traits(StoreTraits traits) { traits_ = std::move(traits); }

// --- the record ---

std::vector<Asked> FaultyStore::asked() const {
  const std::lock_guard lock(guard_);
  return asked_;
}

std::size_t FaultyStore::count(const std::function<bool(const Asked&)>& matches) const {
  const std::lock_guard lock(guard_);
  return static_cast<std::size_t>(std::count_if(asked_.begin(), asked_.end(), matches));
}

std::size_t FaultyStore::calls() const {
  return count([](const Asked&) { return true; });
}
std::size_t FaultyStore::takes() const {
  return count([](const Asked& asked) { return asked.is_take(); });
}
std::size_t FaultyStore::renewals() const {
  return count([](const Asked& asked) { return asked.is_renewal(); });
}
std::size_t FaultyStore::releases() const {
  return count([](const Asked& asked) { return asked.what == What::kRelease; });
}
std::size_t FaultyStore::questions() const {
  return count([](const Asked& asked) { return asked.what == What::kObserve; });
}

std::size_t FaultyStore::watches() const {
  const std::lock_guard lock(hints_->guard);
  return hints_->wakes.size();
}

void FaultyStore::forget() {
  const std::lock_guard lock(guard_);
  asked_.clear();
}

// --- the calls ---

std::optional<FaultyStore::Fault> FaultyStore::next_fault(const Asked& asked) {
  if (down_) return Fault{*down_, false};
  if (!faults_.empty()) {
    Fault fault = std::move(faults_.front());
    faults_.pop_front();
    return fault;
  }
  for (const auto& claim : asked.claims) {
    if (const auto it = poisonous_.find(claim.mutex); it != poisonous_.end()) {
      return Fault{it->second, false};
    }
  }
  return std::nullopt;
}

Answers FaultyStore::answer(Asked asked,
                            const std::function<Answers(const std::vector<std::size_t>&)>& act) {
  Answers answers(asked.claims.size(), Blocked{});
  std::vector<std::size_t> good;
  std::optional<Fault> fault;
  std::function<void(const Asked::Claimed&, Answer&)> last_word;
  {
    const std::lock_guard lock(guard_);
    asked_.push_back(asked);
    fault = next_fault(asked);
    last_word = last_word_;
    for (std::size_t i = 0; i < asked.claims.size(); ++i) {
      const std::string& mutex = asked.claims[i].mutex;
      if (const auto it = spoilt_.find(mutex); it != spoilt_.end()) {
        answers[i] = it->second;
      } else if (!blocked_.contains(mutex)) {
        good.push_back(i);
      }
    }
  }
  if (fault && !fault->acts) throw Error(fault->error);
  Answers real = act(good);
  if (fault) throw Error(fault->error);
  for (std::size_t i = 0; i < good.size(); ++i) answers[good[i]] = std::move(real.at(i));
  for (std::size_t i = 0; last_word && i < answers.size(); ++i)
    last_word(asked.claims[i], answers[i]);
  return answers;
}

Answers FaultyStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  return answer(recorded(What::kContend, claims, deadline), [&](const auto& places) {
    return store_->contend(picked(claims, places), deadline);
  });
}

Answers FaultyStore::release(std::span<const Claim> claims, LocalTime deadline) {
  return answer(recorded(What::kRelease, claims, deadline), [&](const auto& places) {
    return store_->release(picked(claims, places), deadline);
  });
}

Answers FaultyStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  Asked asked{What::kObserve, {}, deadline};
  for (const std::string_view mutex : mutexes) asked.claims.push_back({std::string(mutex), {}});
  return answer(std::move(asked), [&](const auto& places) {
    return store_->observe(picked(mutexes, places), deadline);
  });
}

void FaultyStore::refuse_while_down() const {
  const std::lock_guard lock(guard_);
  if (down_) throw Error(*down_);
}

Observation FaultyStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                               Eviction how, LocalTime deadline) {
  refuse_while_down();
  return store_->evict(mutex, wire_id, token, how, deadline);
}

std::unique_ptr<Watch> FaultyStore::watch(std::string_view mutex, std::string_view wire_id,
                                          std::function<void()> wake) {
  if (!pushes_) return nullptr;
  auto inner = store_->watch(mutex, wire_id, [hints = hints_, wake] {
    {
      const std::lock_guard lock(hints->guard);
      if (hints->dropped) return;
    }
    wake();
  });
  if (!inner) return nullptr;  // neither can it
  auto ticket = std::make_unique<HintTicket>(hints_, mutex, std::move(wake));
  ticket->set_inner(std::move(inner));
  return ticket;
}

std::vector<Listed> FaultyStore::list(std::string_view prefix, std::string_view after,
                                      std::size_t limit, LocalTime deadline) {
  refuse_while_down();
  return store_->list(prefix, after, limit, deadline);
}

}  // namespace simba::testing
