#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "simba/time.h"
#include "stores/zookeeper/places.h"

namespace simba::zookeeper {

// Who stands first in a queue, by the name of its node: what a node says never changes.
struct Leader {
  std::string name;
  std::string id;
  Token token = 0;
};

// What has been read of nodes and need not be read again, and which mutexes are observed.
//
// Threads: any.
class Leaders {
 public:
  std::optional<Leader> find(std::string_view mutex, std::string_view node) const;
  void learn(std::string_view mutex, Leader leader);
  // Whom the container named in that version; 0: nobody ever.
  std::optional<std::string> evicted(std::string_view mutex, const Container& container) const;
  void learn_eviction(std::string_view mutex, const Container& container, std::string node);

  void add_observer(std::string_view mutex);
  void drop_observer(std::string_view mutex);
  bool is_observed(std::string_view mutex) const;

 private:
  struct Known {
    Leader leader;
    Container container;  // when `evicted` was read
    std::string evicted;
  };
  Known& make(std::string_view mutex);

  mutable std::mutex guard_;
  std::unordered_map<std::string, Known> known_;        // guarded by guard_
  std::unordered_map<std::string, unsigned> observed_;  // guarded by guard_
};

}  // namespace simba::zookeeper
