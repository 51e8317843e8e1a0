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
// A server that is stopped, or whose machine is gone, closes no connection: after three seconds
// without a word it is asked for one, and after three more given up.
//
// Threads: one at a time.
class Messages : public kit::LendableSource {
 public:
  Messages(std::unique_ptr<Connection> connection, const Node* node,
           std::shared_ptr<Subscriptions> subscriptions, std::shared_ptr<const Bell> bell,
           const std::string& id);
  ~Messages() override;

  // Asks for what is wanted and takes the answers, as far as they come in time. Throws Error where
  // it may not subscribe: else such a connection would be opened, and fail, again and again without
  // a pause.
  void begin(LocalTime deadline, const kit::StopSignal& stop, const Hint& hint);
  void read_until(int interrupt, LocalTime until, const Hint& hint) override;

 private:
  LocalTime reconcile(LocalTime now);
  void take(const Replies& replies, const Hint& hint);
  // Asks a server that says nothing whether it is there.
  void probe(LocalTime now);
  LocalTime next_probe() const;

  const std::unique_ptr<Connection> connection_;
  const Node* const node_;  // which one: it may be gone
  const std::shared_ptr<Subscriptions> subscriptions_;
  const std::shared_ptr<const Bell> bell_;
  Inbox inbox_;
  LocalTime last_heard_ = BootClock::now();
  LocalTime probed_{};     // none: not since it was heard
  LocalTime next_look_{};  // at what is wanted; with the bell at the latest
};

}  // namespace simba::redis
