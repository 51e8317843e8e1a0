#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "stores/kit/reader.h"
#include "stores/redis/connection.h"
#include "stores/redis/subscriptions.h"

namespace simba::redis {

// The connection that subscribes, and what its messages mean: see listener.h.
//
// Threads: one at a time.
class Messages : public kit::Source {
 public:
  Messages(std::unique_ptr<Connection> connection, std::shared_ptr<const Node> node,
           std::shared_ptr<Subscriptions> subscriptions, std::shared_ptr<const Bell> bell,
           std::string id);
  ~Messages() override;

  void read(const kit::StopSignal& stop, const Hint& hint) override;

 private:
  LocalTime reconcile();
  void handle(const Reply& reply, const Hint& hint);
  void heard(std::string_view channel, std::string_view text, const Hint& hint);
  LocalTime pass_on_due(const Hint& hint);

  const std::unique_ptr<Connection> connection_;
  const std::shared_ptr<const Node> node_;
  const std::shared_ptr<Subscriptions> subscriptions_;
  const std::shared_ptr<const Bell> bell_;
  const std::string own_end_;                          // ":ID", of the channels that are ours alone
  std::map<std::string, LocalTime, std::less<>> due_;  // broadcasts still to be acted on
  std::map<std::string, std::string, std::less<>> told_by_;  // who has woken us already, by mutex
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace simba::redis
