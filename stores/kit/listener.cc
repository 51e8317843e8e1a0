#include "stores/kit/listener.h"

#include <utility>

#include "stores/kit/forked.h"
#include "stores/kit/this_process.h"

namespace simba::kit {

class Listener::Heard : public Watch {
 public:
  Heard(std::unique_ptr<Watch> inner, std::shared_ptr<Reader> reader)
      : inner_(std::move(inner)), reader_(std::move(reader)), need_(*reader_) {}
  ~Heard() override {
    if (process_.is_still()) return;
    need_.forget();
    leave_alone(std::move(reader_));
  }
  bool is_live() const override { return reader_->is_live(); }
  bool listen(int interrupt, LocalTime until) override { return reader_->listen(interrupt, until); }
  void need_reader(bool needed) override { need_.set(needed); }

 private:
  const ThisProcess process_;
  std::unique_ptr<Watch> inner_;
  std::shared_ptr<Reader> reader_;
  Reader::Need need_;
};

std::unique_ptr<Watch> Listener::add(std::string_view mutex, std::function<void()> wake) try {
  const std::lock_guard lock(mutex_);
  // First, so that it hears when the reader goes live.
  auto inner = Watchers::add(watchers_, mutex, std::move(wake));
  if (!reader_) start();
  return std::make_unique<Heard>(std::move(inner), reader_);
} catch (const Error&) {
  return nullptr;
}

void Listener::start() {
  Reader::Parts parts;
  parts.name = thread_;
  parts.open = open_;
  parts.hint = [watchers = watchers_](std::string_view mutex) {
    mutex.empty() ? watchers->wake_all() : watchers->wake(mutex);
  };
  parts.on_trouble = [log = log_](const Error& error) {
    (*log)(LogLevel::kWarning, std::string("waiters poll until this is over: ") + error.what());
  };
  reader_ = std::make_shared<Reader>(std::move(parts));
}

}  // namespace simba::kit
