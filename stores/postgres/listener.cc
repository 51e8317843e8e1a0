#include "stores/postgres/listener.h"

#include <poll.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "stores/kit/forked.h"
#include "stores/kit/per_process.h"
#include "stores/postgres/connection.h"

namespace simba::postgres {
namespace {

class Notifications : public kit::Source {
 public:
  Notifications(std::shared_ptr<Endpoint> endpoint, const kit::StopSignal& stop)
      : endpoint_(std::move(endpoint)), connection_(*endpoint_, stop) {
    if (connection_.is_pooled()) return;
    // The name matches a strict pattern.
    connection_.execute("LISTEN \"" + endpoint_->table() + '"',
                        BootClock::now() + endpoint_->connect_timeout());
  }
  bool is_pooled() const { return connection_.is_pooled(); }

  void read(const kit::StopSignal& stop, const Hint& hint) override {
    PGconn* const connection = connection_.get();
    if (!kit::wait_for(PQsocket(connection), POLLIN, LocalTime::max(), &stop)) return;
    if (PQconsumeInput(connection) != 1) connection_.fail_lost();
    while (PGnotify* news = PQnotifies(connection)) {
      hint(news->extra);
      PQfreemem(news);
    }
    if (PQstatus(connection) != CONNECTION_OK) connection_.fail_lost();
  }

 private:
  const std::shared_ptr<Endpoint> endpoint_;
  Connection connection_;
};

std::string identity_of(const Endpoint& endpoint) {
  std::string all = endpoint.table();
  for (const Endpoint::Keywords& keywords : endpoint.candidates()) {
    for (const auto& [name, value] : keywords)
      all.append(1, '\n').append(name).append(1, '=').append(value);
  }
  return all + '\n' + std::to_string(static_cast<int>(endpoint.options().pooler));
}

}  // namespace

class Listener::Heard : public Watch {
 public:
  Heard(std::unique_ptr<Watch> inner, std::shared_ptr<kit::Reader> reader)
      : inner_(std::move(inner)), reader_(std::move(reader)) {}
  ~Heard() override {
    if (getpid() != process_) kit::leave_alone(std::move(reader_));
  }
  bool is_live() const override { return reader_->is_live(); }

 private:
  const pid_t process_ = getpid();
  std::unique_ptr<Watch> inner_;
  std::shared_ptr<kit::Reader> reader_;
};

std::shared_ptr<Listener> Listener::of(const std::shared_ptr<Endpoint>& endpoint,
                                       const std::shared_ptr<kit::SharedLog>& log) {
  if (endpoint->options().connector) return std::make_shared<Listener>(endpoint, log);
  return kit::PerProcess<Listener>::get(identity_of(*endpoint),
                                        [&] { return std::make_shared<Listener>(endpoint, log); });
}

std::unique_ptr<Watch> Listener::add(std::string_view mutex, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  if (endpoint_->is_behind_pooler()) return nullptr;
  // First, so that it hears when the reader goes live.
  auto inner = kit::Watchers::add(watchers_, mutex, std::move(wake));
  if (!start()) return nullptr;
  return std::make_unique<Heard>(std::move(inner), reader_);
}

bool Listener::start() try {
  if (reader_) return true;
  kit::Reader::Parts parts;
  parts.name = "simba-listen";
  parts.open = [endpoint = endpoint_](const kit::StopSignal& stop) {
    auto source = std::make_unique<Notifications>(endpoint, stop);
    if (source->is_pooled()) source.reset();
    return source;
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

}  // namespace simba::postgres
