#include "testing/model_store.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "stores/kit/watchers.h"
#include "stores/memory/lease_table.h"
#include "testing/session_table.h"

namespace simba::testing {
namespace {

class ModelStore : public Store {
 public:
  ModelStore(std::shared_ptr<ModelServer> server,
             std::function<void(const std::function<void()>&)> carry,
             std::function<bool()> is_replaced)
      : server_(std::move(server)),
        carry_(std::move(carry)),
        is_replaced_(std::move(is_replaced)),
        traits_{std::string("model ") + to_string(server_->kind()), 255, 255,
                server_->kind() == ModelKind::kSession} {}

  const StoreTraits& traits() const override { return traits_; }

  Answers contend(std::span<const Claim> claims, LocalTime) override {
    return opened().contend(claims);
  }

  Answers release(std::span<const Claim> claims, LocalTime) override {
    return opened().release(claims);
  }

  Answers observe(std::span<const std::string_view> mutexes, LocalTime) override {
    return opened().observe(mutexes);
  }

  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime) override {
    return opened().evict(mutex, wire_id, token, how);
  }

  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view,
                               std::function<void()> wake) override {
    if (!carry_) return server_->watch(mutex, std::move(wake));
    return server_->watch(mutex, [carry = carry_, wake = std::move(wake)] { carry(wake); });
  }

  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime) override {
    return opened().list(prefix, after, limit);
  }

 private:
  ModelServer& opened() const {
    if (!is_replaced_ || !is_replaced_()) return *server_;
    throw Error(Errc::kReplaced, "another store stands under its name");
  }

  const std::shared_ptr<ModelServer> server_;
  const std::function<void(const std::function<void()>&)> carry_;
  const std::function<bool()> is_replaced_;
  const StoreTraits traits_;
};

Token last_token(const SessionTable& rows) { return rows.last_token(); }

Token last_token(const memory::LeaseTable& rows) {
  Token last = 0;
  for (const Listed& row : rows.list("", "", std::numeric_limits<std::size_t>::max(), {})) {
    last = std::max(last, row.observation.owner.token);
  }
  return last;
}

}  // namespace

const char* to_string(ModelKind kind) {
  switch (kind) {
    case ModelKind::kLease:
      return "lease";
    case ModelKind::kPush:
      return "push";
    case ModelKind::kSession:
      return "session";
    case ModelKind::kForgetful:
      return "forgetful";
  }
  return "unknown";
}

struct ModelServer::Tables {
  using Rows = std::variant<memory::LeaseTable, SessionTable>;

  explicit Tables(ModelKind kind) {
    if (kind == ModelKind::kSession) rows = SessionTable{};
    remembered = rows;
  }

  Rows rows;
  Rows remembered;
  const std::shared_ptr<kit::Watchers> watchers = std::make_shared<kit::Watchers>();
};

ModelServer::ModelServer(ModelKind kind, std::function<StoreTime()> clock)
    : kind_(kind), clock_(std::move(clock)), tables_(std::make_unique<Tables>(kind)) {}

ModelServer::~ModelServer() = default;

std::unique_ptr<Watch> ModelServer::watch(std::string_view mutex, std::function<void()> wake) {
  if (kind_ == ModelKind::kLease) return nullptr;
  return kit::Watchers::add(tables_->watchers, mutex, std::move(wake));
}

// R2: a store that can forget its counter takes the time where that is larger.
Claim ModelServer::with_floor(const Claim& claim, StoreTime now) const {
  Claim raised = claim;
  raised.floor = std::max(raised.floor, floor_);
  if (kind_ == ModelKind::kForgetful) {
    const std::chrono::microseconds time = now.time_since_epoch();
    raised.floor = std::max(raised.floor, static_cast<Token>(time.count()));
  }
  return raised;
}

Observation ModelServer::look(std::string_view mutex, StoreTime now) const {
  return std::visit([&](auto& rows) { return rows.observe(mutex, now); }, tables_->rows);
}

// One write, under the lock: not to a row somebody else has locked, and seen by the oracle.
template <class Act>
Answer ModelServer::act(const Claim& claim, bool is_release, StoreTime now, Act act) {
  if (!blocked_.empty() && blocked_.contains(claim.mutex)) return Blocked{};
  if (!on_write_) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    return act();
  }
  const Observation before = look(claim.mutex, now);
  Answer answer = act();
  // Who claims is told what stands there now.
  Observation looked_up;
  if (is_release) looked_up = look(claim.mutex, now);
  const Observation& after = is_release ? looked_up : std::get<Observation>(answer);
  if (before.owner != after.owner) changes_.fetch_add(1, std::memory_order_relaxed);
  on_write_(claim, is_release, before, after);
  return answer;
}

Answers ModelServer::contend(std::span<const Claim> claims) {
  const std::lock_guard lock(guard_);
  const StoreTime now = clock_();
  Answers answers;
  answers.reserve(claims.size());
  for (const Claim& claim : claims) {
    const Claim raised = with_floor(claim, now);
    answers.push_back(act(claim, false, now, [&]() -> Answer {
      return std::visit([&](auto& rows) { return rows.contend(raised, now); }, tables_->rows);
    }));
  }
  return answers;
}

Answers ModelServer::release(std::span<const Claim> claims) {
  Answers answers;
  {
    const std::lock_guard lock(guard_);
    const StoreTime now = clock_();
    for (const Claim& claim : claims) {
      answers.push_back(act(claim, true, now, [&]() -> Answer {
        std::visit([&](auto& rows) { rows.release(claim); }, tables_->rows);
        return Observation{};
      }));
    }
  }
  for (const Claim& claim : claims) tables_->watchers->wake(claim.mutex);
  return answers;
}

void ModelServer::block(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  blocked_.emplace(mutex);
}

void ModelServer::unblock(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  const auto it = blocked_.find(mutex);
  if (it != blocked_.end()) blocked_.erase(it);
}

bool ModelServer::is_blocked(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  return blocked_.contains(mutex);
}

Answers ModelServer::observe(std::span<const std::string_view> mutexes) {
  Answers answers;
  for (const std::string_view mutex : mutexes) answers.emplace_back(peek(mutex));
  return answers;
}

Observation ModelServer::peek(std::string_view mutex) {
  const std::lock_guard lock(guard_);
  return look(mutex, clock_());
}

Observation ModelServer::evict(std::string_view mutex, std::string_view wire_id, Token token,
                               Eviction how) {
  Observation after;
  {
    const std::lock_guard lock(guard_);
    changes_.fetch_add(1, std::memory_order_relaxed);
    after = std::visit([&](auto& rows) { return rows.evict(mutex, wire_id, token, how, clock_()); },
                       tables_->rows);
  }
  tables_->watchers->wake(mutex);
  return after;
}

std::vector<Listed> ModelServer::list(std::string_view prefix, std::string_view after,
                                      std::size_t limit) {
  const std::lock_guard lock(guard_);
  return std::visit([&](auto& rows) { return rows.list(prefix, after, limit, clock_()); },
                    tables_->rows);
}

Token ModelServer::replace() {
  const std::lock_guard lock(guard_);
  changes_.fetch_add(1, std::memory_order_relaxed);
  replacements_.fetch_add(1, std::memory_order_relaxed);
  floor_ = std::visit([](const auto& rows) { return last_token(rows); }, tables_->rows);
  tables_->rows = Tables(kind_).rows;
  return floor_;
}

void ModelServer::remember() {
  const std::lock_guard lock(guard_);
  tables_->remembered = tables_->rows;
}

void ModelServer::fail_over() {
  const std::lock_guard lock(guard_);
  changes_.fetch_add(1, std::memory_order_relaxed);
  tables_->rows = tables_->remembered;
}

std::shared_ptr<Store> connect_model(std::shared_ptr<ModelServer> server,
                                     std::function<void(const std::function<void()>&)> carry,
                                     std::function<bool()> is_replaced) {
  return std::make_shared<ModelStore>(std::move(server), std::move(carry), std::move(is_replaced));
}

}  // namespace simba::testing
