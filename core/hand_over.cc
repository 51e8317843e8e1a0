#include "core/hand_over.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/fork.h"

namespace simba::core {
namespace {

// A task on its way through the user's executor: it runs once, whoever has it.
//
// Threads: any.
class Handed {
 public:
  Handed(std::shared_ptr<Executor> executor, std::function<void()> task)
      : executor_(std::move(executor)), task_(std::move(task)) {}
  // Nobody has run it, and nobody will: who drops it may stand under a lock of his own.
  ~Handed() {
    if (!was_run_ && fork_epoch() == process_) executor_->callback(std::move(task_));
  }
  Handed(const Handed&) = delete;
  Handed& operator=(const Handed&) = delete;

  void run() {
    if (was_run_.exchange(true)) return;
    const std::function<void()> task = std::move(task_);
    task();
  }

 private:
  const std::shared_ptr<Executor> executor_;
  const std::uint64_t process_ = fork_epoch();
  std::function<void()> task_;
  std::atomic<bool> was_run_{false};
};

// What throws may have taken it all the same, and then it runs twice but for Handed.
void offer(const HandleExecutor& users, const std::shared_ptr<Handed>& handed) {
  try {
    users([handed] { handed->run(); });
  } catch (...) {
    handed->run();
  }
}

}  // namespace

void hand_over(std::shared_ptr<Executor> executor, HandleExecutor users,
               std::function<void()> task) {
  Executor& ours = *executor;
  if (!users) {
    ours.callback(std::move(task));
    return;
  }
  auto handed = std::make_shared<Handed>(std::move(executor), std::move(task));
  ours.callback([users = std::move(users), handed = std::move(handed)] { offer(users, handed); });
}

}  // namespace simba::core
