#include "stores/zookeeper/gathering.h"

#include "stores/zookeeper/failure.h"

namespace simba::zookeeper {

Errand::Finish Gathering::place(std::size_t index) {
  return [me = shared_from_this(), index](Answer answer) { me->put(index, std::move(answer)); };
}

void Gathering::put(std::size_t index, Answer answer) {
  const std::lock_guard lock(guard_);
  if (answers_[index]) return;
  answers_[index] = std::move(answer);
  if (--missing_ == 0) complete_.notify_one();
}

Answers Gathering::wait(const Round& round) {
  std::unique_lock lock(guard_);
  complete_.wait_for(lock, round.deadline - BootClock::now(), [this] { return missing_ == 0; });
  Answers all;
  all.reserve(answers_.size());
  for (std::optional<Answer>& answer : answers_) {
    if (!answer) answer = failure(ZOPERATIONTIMEOUT, "finish the call", round.session->where());
    all.push_back(*answer);
  }
  return all;
}

}  // namespace simba::zookeeper
