#include "stores/mysql/listener.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "stores/kit/forked.h"
#include "stores/kit/per_process.h"

namespace simba::mysql {
namespace {

std::string identity_of(const Endpoint& endpoint) {
  const MysqlOptions& options = endpoint.options();
  std::string all = endpoint.where() + '\n' + endpoint.table();
  for (const std::string& each : {options.user, options.password, options.root_certificate,
                                  options.certificate, options.key}) {
    all.append(1, '\n').append(each);
  }
  return all + "\n" + std::to_string(static_cast<int>(options.tls)) + "\n" +
         std::to_string(options.connect_timeout.count());
}

}  // namespace

class Listener::Heard : public Watch {
 public:
  Heard(std::unique_ptr<Watch> inner, std::shared_ptr<kit::Reader> reader,
        std::shared_ptr<Bells> bells, std::string_view mutex)
      : inner_(std::move(inner)),
        reader_(std::move(reader)),
        bells_(std::move(bells)),
        bell_(bells_->want(mutex)) {}
  ~Heard() override {
    if (getpid() != process_) {
      kit::leave_alone(std::move(reader_));
      kit::leave_alone(std::move(bells_));
      return;
    }
    bells_->drop(bell_);
  }
  bool is_live() const override { return bell_->is_live && reader_->is_live(); }

 private:
  const pid_t process_ = getpid();
  std::unique_ptr<Watch> inner_;
  std::shared_ptr<kit::Reader> reader_;
  std::shared_ptr<Bells> bells_;
  std::shared_ptr<Bells::Bell> bell_;
};

std::shared_ptr<Listener> Listener::of(const std::shared_ptr<Endpoint>& endpoint,
                                       const std::shared_ptr<kit::SharedLog>& log) {
  const auto make = [&] { return std::make_shared<Listener>(endpoint, log); };
  if (endpoint->options().connector) return make();
  return kit::PerProcess<Listener>::get(identity_of(*endpoint), make);
}

std::unique_ptr<Watch> Listener::add(std::string_view mutex, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  // First, so that it hears when the reader goes live.
  auto inner = kit::Watchers::add(watchers_, mutex, std::move(wake));
  if (!start()) return nullptr;
  return std::make_unique<Heard>(std::move(inner), reader_, bells_, mutex);
}

bool Listener::start() try {
  if (reader_) return true;
  kit::Reader::Parts parts;
  parts.name = "simba-bell";
  parts.open = [endpoint = endpoint_, bells = bells_](const kit::StopSignal& stop) {
    return std::make_unique<BellSource>(endpoint, bells, stop);
  };
  parts.hint = [watchers = watchers_](std::string_view mutex) {
    mutex.empty() ? watchers->wake_all() : watchers->wake(mutex);
  };
  parts.on_trouble = [endpoint = endpoint_](const Error& error) {
    endpoint->log(LogLevel::kWarning,
                  std::string("waiters poll until this is over: ") + error.what());
  };
  reader_ = std::make_shared<kit::Reader>(std::move(parts));
  return true;
} catch (const Error&) {
  return false;
}

}  // namespace simba::mysql
