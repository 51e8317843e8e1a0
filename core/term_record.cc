#include "core/term_record.h"

#include <algorithm>
#include <utility>

#include "core/fork.h"

namespace simba::core {

TermRecord::TermRecord(std::shared_ptr<const Executor> executor, std::string mutex_name,
                       std::string id, Token term_token)
    : mutex(std::move(mutex_name)),
      wire_id(std::move(id)),
      token(term_token),
      executor_(std::move(executor)),
      process_(fork_epoch()) {}

bool TermRecord::is_forked() const { return fork_epoch() != process_; }

bool TermRecord::is_in_ttl() const {
  if (is_forked()) return false;
  const LocalTime now = executor_->now();
  if (now < ttl_end_.load()) return true;
  lasts_until(now);
  return false;
}

bool TermRecord::is_owner() const {
  if (is_forked()) return false;
  const LocalTime now = executor_->now();
  return now < lasts_until(now);
}

nanoseconds TermRecord::time_left() const {
  if (is_forked()) return nanoseconds{0};
  const LocalTime now = executor_->now();
  const LocalTime until = lasts_until(now);
  return until > now ? until - now : nanoseconds{0};
}

LocalTime TermRecord::lasts_until(LocalTime now) const {
  LocalTime until = revoke_at_.load();
  while (now >= until && !revoke_at_.compare_exchange_weak(until, kOver)) continue;
  return until;
}

Loss TermRecord::loss() const {
  if (is_forked()) return {};
  const std::lock_guard lock(guard_);
  return loss_;
}

bool TermRecord::extend(LocalTime ttl_end, LocalTime revoke_at) {
  LocalTime shown = revoke_at_.load();
  while (shown != kOver && shown != revoke_at) {
    if (revoke_at_.compare_exchange_weak(shown, revoke_at)) break;
  }
  if (shown == kOver) return false;
  if (ttl_end_.load() != ttl_end) ttl_end_.store(ttl_end);
  return true;
}

void TermRecord::end() {
  if (revoke_at_.load() == kOver) return;
  ttl_end_.store(kOver);
  revoke_at_.store(kOver);
}

bool TermRecord::set_loss(Loss loss) {
  const std::lock_guard lock(guard_);
  loss_ = std::move(loss);
  is_lost_ = true;
  return lost_.stop_possible();
}

std::stop_token TermRecord::lost() const {
  if (is_forked()) {
    std::stop_source owns_nothing;
    owns_nothing.request_stop();
    return owns_nothing.get_token();
  }
  const std::lock_guard lock(guard_);
  if (!lost_.stop_possible()) {
    lost_ = std::stop_source();
    if (is_lost_) lost_.request_stop();  // nobody listens yet
  }
  return lost_.get_token();
}

void TermRecord::request_stop() {
  std::unique_lock lock(guard_);
  std::stop_source lost(lost_);
  lock.unlock();
  lost.request_stop();
}

}  // namespace simba::core

namespace simba::inline v0 {

Term::Term() = default;
Term::Term(std::shared_ptr<const core::TermRecord> record) : record_(std::move(record)) {}

Token Term::token() const { return record_ ? record_->token : 0; }
const std::string& Term::mutex() const {
  static const std::string none;
  return record_ ? record_->mutex : none;
}
const std::string& Term::wire_id() const {
  static const std::string none;
  return record_ ? record_->wire_id : none;
}
std::stop_token Term::lost() const { return record_ ? record_->lost() : std::stop_token{}; }
bool Term::is_in_ttl() const { return record_ && record_->is_in_ttl(); }
bool Term::is_owner() const { return record_ && record_->is_owner(); }
nanoseconds Term::time_left() const { return record_ ? record_->time_left() : nanoseconds{0}; }
Loss Term::loss() const { return record_ ? record_->loss() : Loss{}; }

}  // namespace simba::inline v0
