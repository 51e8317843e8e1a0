#include "testing/fake_executor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace simba::testing {
namespace {

constexpr std::size_t kTooManySteps = 1'000'000;

std::function<void()> take_first(std::deque<std::function<void()>>& tasks) {
  std::function<void()> first = std::move(tasks.front());
  tasks.pop_front();
  return first;
}

}  // namespace

void HeldCall::send() {
  if (!std::exchange(sent_, true)) call_->send();
}

void HeldCall::perform() {
  send();
  if (!std::exchange(answered_, true)) call_->perform();
}

void HeldCall::lose() {
  send();
  answered_ = true;
  call_->lose();
}

void HeldCall::complete() {
  perform();
  if (!std::exchange(done_, true)) call_->complete();
}

FakeExecutor::FakeExecutor(std::uint64_t seed) : random_(seed) {}

void FakeExecutor::advance(nanoseconds span) {
  const LocalTime end = now_ + span;
  run();
  while (alarm_ <= end) {
    now_ = std::max(now_, alarm_);
    run();
  }
  now_ = end;
}

void FakeExecutor::run() {
  for (std::size_t steps = 0; step(); ++steps) {
    if (steps == kTooManySteps) {
      throw std::logic_error(
          "the engine does not come to rest: something is repeated without a pause");
    }
  }
}

bool FakeExecutor::step() {
  if (!revokes_.empty()) {
    take_first(revokes_)();
    return true;
  }
  if (alarm_ <= now_ && on_alarm_ && !shut_down_) {
    alarm_ = LocalTime::max();
    on_alarm_();
    return true;
  }
  if (!holds_calls_ && make_call()) return true;
  return !holds_callbacks_ && run_callback();
}

bool FakeExecutor::make_call() {
  if (calls_.empty()) return false;
  const std::shared_ptr<HeldCall> call = std::move(calls_.front());
  calls_.pop_front();
  if (!call->is_done()) call->complete();
  return true;
}

std::vector<std::shared_ptr<HeldCall>> FakeExecutor::pending_calls() {
  std::erase_if(calls_, [](const auto& call) { return call->is_done(); });
  return {calls_.begin(), calls_.end()};
}

void FakeExecutor::let_calls_go() {
  holds_calls_ = false;
  run();
}

bool FakeExecutor::run_callback() {
  if (callbacks_.empty()) return false;
  take_first(callbacks_)();
  return true;
}

void FakeExecutor::let_callbacks_go() {
  holds_callbacks_ = false;
  run();
}

std::function<StoreTime()> FakeExecutor::store_clock(milliseconds ahead) const {
  return [this, ahead] {
    return StoreTime{std::chrono::floor<milliseconds>(now_.time_since_epoch()) + ahead};
  };
}

std::uint64_t FakeExecutor::random() {
  ++drawn_;
  return random_();
}

void FakeExecutor::set_alarm(LocalTime at) { alarm_ = std::min(alarm_, at); }

void FakeExecutor::call(Lane lane, std::shared_ptr<StoreCall> call) {
  if (!shut_down_) calls_.push_back(std::make_shared<HeldCall>(lane, std::move(call)));
}

void FakeExecutor::callback(std::function<void()> task) {
  if (!shut_down_) callbacks_.push_back(std::move(task));
}

void FakeExecutor::revoke(std::function<void()> task) {
  if (!shut_down_) revokes_.push_back(std::move(task));
}

// Destroying a task may bring another: they are taken out first.
void FakeExecutor::shut_down() {
  while (!revokes_.empty()) take_first(revokes_)();
  shut_down_ = true;
  alarm_ = LocalTime::max();
  const auto calls = std::exchange(calls_, {});
  const auto callbacks = std::exchange(callbacks_, {});
}

}  // namespace simba::testing
