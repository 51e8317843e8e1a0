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
// In a cluster a thread looks at the map while somebody waits: who only watches sends no command
// that would be told of another master.
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
  // A node that is forgotten needs no ear.
  using Ears = std::map<std::weak_ptr<Node>, std::shared_ptr<Ear>, std::owner_less<>>;

  std::shared_ptr<Ear> ear_of(const std::shared_ptr<Node>& node);
  void follow();
  void start_scout();
  void forget(const std::string& mutex);

  const std::shared_ptr<Courier> courier_;
  const std::string id_;
  const std::shared_ptr<Subscriptions> subscriptions_ = std::make_shared<Subscriptions>();
  const std::shared_ptr<kit::Watchers> watchers_ = std::make_shared<kit::Watchers>();
  std::mutex guard_;
  Ears ears_;                   // guarded by guard_
  std::shared_ptr<Ear> scout_;  // guarded by guard_; of a cluster: looks at the map
};

}  // namespace simba::redis
