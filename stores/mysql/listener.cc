#include "stores/mysql/listener.h"

#include <string>
#include <utility>

#include "stores/kit/forked.h"
#include "stores/kit/per_process.h"
#include "stores/kit/this_process.h"

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

class Listener::Rung : public Watch {
 public:
  Rung(std::unique_ptr<Watch> heard, std::shared_ptr<Bells> bells, std::string_view mutex)
      : heard_(std::move(heard)), bells_(std::move(bells)), bell_(bells_->want(mutex)) {}
  ~Rung() override {
    process_.is_still() ? bells_->drop(bell_) : kit::leave_alone(std::move(bells_));
  }
  bool is_live() const override { return bell_->is_live && heard_->is_live(); }

 private:
  const kit::ThisProcess process_;
  std::unique_ptr<Watch> heard_;
  std::shared_ptr<Bells> bells_;
  std::shared_ptr<Bells::Bell> bell_;
};

Listener::Listener(const std::shared_ptr<Endpoint>& endpoint,
                   const std::shared_ptr<kit::SharedLog>& log)
    : listener_(
          "simba-bell",
          [endpoint, bells = bells_](const kit::StopSignal& stop) {
            return std::make_unique<BellSource>(endpoint, bells, stop);
          },
          log) {}

std::shared_ptr<Listener> Listener::of(const std::shared_ptr<Endpoint>& endpoint,
                                       const std::shared_ptr<kit::SharedLog>& log) {
  const auto make = [&] { return std::make_shared<Listener>(endpoint, log); };
  if (endpoint->options().connector) return make();
  return kit::PerProcess<Listener>::get(identity_of(*endpoint), make);
}

std::unique_ptr<Watch> Listener::add(std::string_view mutex, std::function<void()> wake) {
  auto heard = listener_.add(mutex, std::move(wake));
  if (!heard) return nullptr;
  return std::make_unique<Rung>(std::move(heard), bells_, mutex);
}

}  // namespace simba::mysql
