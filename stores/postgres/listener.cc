#include "stores/postgres/listener.h"

#include <poll.h>

#include <string>
#include <utility>

#include "stores/kit/per_process.h"
#include "stores/postgres/connection.h"

namespace simba::postgres {
namespace {

class Notifications : public kit::LendableSource {
 public:
  Notifications(std::shared_ptr<Endpoint> endpoint, const kit::StopSignal& stop)
      : endpoint_(std::move(endpoint)), connection_(*endpoint_, stop) {
    if (connection_.is_pooled()) return;
    // The name matches a strict pattern.
    connection_.execute("LISTEN \"" + endpoint_->table() + '"',
                        BootClock::now() + endpoint_->connect_timeout());
  }
  bool is_pooled() const { return connection_.is_pooled(); }

  void read_until(int interrupt, LocalTime until, const Hint& hint) override {
    PGconn* const connection = connection_.get();
    if (!kit::wait_for(PQsocket(connection), POLLIN, until, interrupt)) return;
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
  std::string all = "postgres\n" + endpoint.table();
  for (const Endpoint::Keywords& keywords : endpoint.candidates()) {
    for (const auto& [name, value] : keywords)
      all.append(1, '\n').append(name).append(1, '=').append(value);
  }
  return all + '\n' + std::to_string(static_cast<int>(endpoint.options().pooler));
}

}  // namespace

std::shared_ptr<kit::Listener> listener_of(const std::shared_ptr<Endpoint>& endpoint,
                                           const std::shared_ptr<kit::SharedLog>& log) {
  const auto make = [&] {
    return std::make_shared<kit::Listener>(
        "simba-listen",
        [endpoint](const kit::StopSignal& stop) {
          auto source = std::make_unique<Notifications>(endpoint, stop);
          if (source->is_pooled()) source.reset();
          return source;
        },
        log);
  };
  if (endpoint->options().connector) return make();
  return kit::PerProcess<kit::Listener>::get(identity_of(*endpoint), make);
}

}  // namespace simba::postgres
