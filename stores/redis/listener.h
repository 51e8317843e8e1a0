#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "simba/store.h"
#include "stores/kit/reader.h"
#include "stores/kit/watchers.h"
#include "stores/redis/courier.h"
#include "stores/redis/subscriptions.h"

namespace simba::redis {

// Who waits for which mutex, the one connection that hears of them (in a cluster one for each
// master that serves them), and the place of this process in their queues.
//
//   released@@X on simba:{M}:US  this process was the first in the queue: it asks at once
//   released@@X on simba:{M}     somebody else was, or nobody is woken: it asks after 0 to 20 ms,
//   acquired@@Y on simba:{M}     unless this comes first: a process in the queue need not ask
//
// One place in the queue serves all who wait in this process, in the order of their coming. A
// message makes somebody ask and decides nothing.
//
// Threads: any.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  explicit Listener(std::shared_ptr<Courier> courier);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  // Null where no thread is left for it.
  std::unique_ptr<Watch> add(std::string_view mutex, std::function<void()> wake);

  // The member of the queue, and the end of the channel's name.
  const std::string& id() const { return id_; }
  Subscriptions& subscriptions() { return *subscriptions_; }

 private:
  struct Ear;
  class Heard;

  std::shared_ptr<Ear> ear_of(const std::shared_ptr<Node>& node);
  void follow();
  void forget(const std::string& mutex);

  const std::shared_ptr<Courier> courier_;
  const std::string id_;
  const std::shared_ptr<Subscriptions> subscriptions_ = std::make_shared<Subscriptions>();
  const std::shared_ptr<kit::Watchers> watchers_ = std::make_shared<kit::Watchers>();
  std::mutex guard_;
  std::map<const Node*, std::shared_ptr<Ear>> ears_;  // guarded by guard_
};

}  // namespace simba::redis
