#include "stores/kit/shared_log.h"

#include <utility>

#include "stores/kit/this_process.h"

namespace simba::kit {

class SharedLog::Ticket {
 public:
  Ticket(std::shared_ptr<SharedLog> log, std::list<Entry>::iterator at)
      : log_(std::move(log)), at_(at) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (!process_.is_still()) return;  // forked: somebody may have held the lock then
    std::list<Entry> ended;
    std::unique_lock lock(log_->guard_);
    ended.splice(ended.begin(), log_->entries_, at_);
    log_->done_.wait(lock, [&] { return ended.front().running == 0; });
  }

 private:
  const ThisProcess process_;
  const std::shared_ptr<SharedLog> log_;
  const std::list<Entry>::iterator at_;
};

LogSink SharedLog::sink_of(std::shared_ptr<SharedLog> log) {
  return [log = std::move(log)](LogLevel level, std::string_view line) { (*log)(level, line); };
}

std::shared_ptr<SharedLog::Ticket> SharedLog::add(std::shared_ptr<SharedLog> log, LogSink sink) {
  if (!sink) return nullptr;
  SharedLog& all = *log;
  const std::lock_guard lock(all.guard_);
  const auto at = all.entries_.insert(all.entries_.end(), {std::move(sink)});
  return std::make_shared<Ticket>(std::move(log), at);
}

void SharedLog::operator()(LogLevel level, std::string_view line) {
  std::unique_lock lock(guard_);
  if (entries_.empty()) return;
  Entry& first = entries_.front();
  ++first.running;
  lock.unlock();
  first.sink(level, line);
  lock.lock();
  --first.running;
  done_.notify_all();
}

}  // namespace simba::kit
