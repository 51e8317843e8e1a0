#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stores/zookeeper/errand.h"

namespace simba::zookeeper {

// Renews many terms of one session by one transaction that changes nothing: it compares the
// versions of each node and its container. Where one is not as it should be, each is asked alone.
class Renewal : public std::enable_shared_from_this<Renewal> {
 public:
  struct Item {
    Wish wish;
    Errand::Finish finish;
  };
  Renewal(Round round, std::vector<Item> items)
      : round_(std::move(round)), items_(std::move(items)) {}
  void start();

 private:
  void checked(int code, const std::vector<int>& each, LocalTime sent);
  void renewed(Item& item, LocalTime until);
  void refused(Item& item, int node_code);
  void read_eviction(Item& item);
  Error failed(int code, const Wish& wish) const;
  void look(Item& item);

  const Round round_;
  std::vector<Item> items_;
  std::vector<std::pair<std::string, int>> versions_;
};

}  // namespace simba::zookeeper
