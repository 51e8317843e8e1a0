#pragma once

#include <memory>
#include <string>

#include "stores/kit/reader.h"
#include "stores/redis/connection.h"
#include "stores/redis/inbox.h"
#include "stores/redis/subscriptions.h"

namespace simba::redis {

// The connection that subscribes: see listener.h. What its messages mean is the inbox's.
//
// Threads: one at a time.
class Messages : public kit::Source {
 public:
  Messages(std::unique_ptr<Connection> connection, std::shared_ptr<const Node> node,
           std::shared_ptr<Subscriptions> subscriptions, std::shared_ptr<const Bell> bell,
           const std::string& id);
  ~Messages() override;

  void read(const kit::StopSignal& stop, const Hint& hint) override;

 private:
  LocalTime reconcile();

  const std::unique_ptr<Connection> connection_;
  const std::shared_ptr<const Node> node_;
  const std::shared_ptr<Subscriptions> subscriptions_;
  const std::shared_ptr<const Bell> bell_;
  Inbox inbox_;
};

}  // namespace simba::redis
