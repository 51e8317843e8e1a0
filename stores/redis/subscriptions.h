#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "simba/time.h"
#include "stores/redis/node.h"

namespace simba::redis {

// Rings for a thread that waits in poll(). Threads: any.
class Bell {
 public:
  Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell();
  void ring() const noexcept;
  void quiet() const noexcept;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

// Which mutexes this process wants to hear of, which it hears of, and where it stands in a queue.
//
//   kNew -> kAsked -> kLive      and back to kNew when the connection is lost or the slot has moved
//
// A mutex nobody watches any more is heard of for some seconds longer: the next who waits is often
// near, and then stands in the queue with its first question.
//
// Threads: any.
class Subscriptions {
 public:
  static constexpr milliseconds kLinger{5'000};

  struct Watched {
    bool is_new;  // it has to be asked for
    // Whether it is heard of; as long as it is watched. Renewals ask, so there is no lock, no
    // search.
    const std::atomic<bool>* is_live;
  };
  Watched watch(const std::string& mutex, std::shared_ptr<Node> node);
  // True: it was the last, and there was a place in a queue, which is to be given up. What was not
  // asked for yet is forgotten.
  bool unwatch(const std::string& mutex, LocalTime now);
  // False: nobody here has asked to hear of it.
  bool knows(std::string_view mutex) const;

  // The place of this process in the queue of a mutex, as far as it is known.
  struct Place {
    bool heard = false;      // it would hear a wake-up: it may queue
    bool queued = false;     // it did
    std::int64_t since = 0;  // by the server's clock, in ms
    std::int64_t lease = 0;  // that it waits for, in ms
  };
  Place place(std::string_view mutex) const;
  void queued(std::string_view mutex, std::int64_t since, std::int64_t lease);
  void left_queue(std::string_view mutex);

  // For the connection to one node: what it has to ask for, and when to look again.
  struct Changes {
    std::vector<std::string> subscribe, unsubscribe;
    LocalTime next = LocalTime::max();
  };
  Changes changes(const Node* node, LocalTime now);
  // The node, where somebody waits for what it serves; null for the rest.
  std::shared_ptr<Node> wanted(const Node* node) const;
  // Somebody waits for what no known node serves.
  bool is_at_a_loss() const;
  bool is_watched() const;
  void confirmed(const std::string& mutex);
  // Something was asked of this node and is not confirmed yet.
  bool awaits_answer(const Node* node) const;
  // The connection to this node is gone.
  void lost(const Node* node);
  // Every mutex is listened for where it is served now. Returns the nodes with something to do.
  std::vector<std::shared_ptr<Node>> place_all(
      const std::function<std::shared_ptr<Node>(std::string_view mutex)>& node_of);

 private:
  enum class Stage { kNew, kAsked, kLive };
  struct Entry {
    std::shared_ptr<Node> node;        // null: nobody knows yet
    Stage stage = Stage::kNew;         // see set()
    std::atomic<bool> is_live{false};  // as the stage says
    std::size_t watches = 0;
    LocalTime unwatched{};
    bool is_queued = false;
    std::int64_t since = 0, lease = 0;

    void set(Stage next) {
      stage = next;
      is_live.store(next == Stage::kLive, std::memory_order_relaxed);
    }
  };

  mutable std::mutex guard_;
  std::map<std::string, Entry, std::less<>> entries_;         // guarded by guard_
  std::map<const Node*, std::vector<std::string>> departed_;  // guarded by guard_: to unsubscribe
};

}  // namespace simba::redis
