#include "stores/redis/session.h"

#include "stores/kit/per_process.h"

namespace simba::redis {
namespace {

std::string identity_of(const RedisOptions& options) {
  std::string all;
  const auto add = [&](const std::string& value) { all.append(1, '\n').append(value); };
  for (const std::string& host : options.hosts) add(host);
  for (const std::string* each :
       {&options.master, &options.user, &options.password, &options.sentinel_user,
        &options.sentinel_password, &options.ca_file, &options.cert_file, &options.key_file,
        &options.server_name, &options.client_name}) {
    add(*each);
  }
  for (const long each :
       {static_cast<long>(options.topology), static_cast<long>(options.transport),
        static_cast<long>(options.queue), static_cast<long>(options.restart_guard),
        static_cast<long>(options.database), static_cast<long>(options.replicas),
        static_cast<long>(options.connect_timeout.count())}) {
    add(std::to_string(each));
  }
  return all;
}

}  // namespace

Session::Session(const RedisOptions& options)
    : courier(std::make_shared<Courier>(std::make_shared<Dialer>(kit::with_log(options, log)))),
      listener(std::make_shared<Listener>(courier)),
      requests(options, listener->id()) {}

std::shared_ptr<Session> Session::of(const RedisOptions& options) {
  return kit::PerProcess<Session>::get(identity_of(options),
                                       [&] { return std::make_shared<Session>(options); });
}

}  // namespace simba::redis
