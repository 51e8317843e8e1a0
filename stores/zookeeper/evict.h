#pragma once

#include <string>
#include <utility>

#include "stores/zookeeper/errand.h"

namespace simba::zookeeper {

// Takes the ownership from somebody.
class Evict : public Errand {
 public:
  Evict(Round round, Wish wish, Eviction how, Finish finish)
      : Errand(std::move(round), std::move(wish), std::move(finish)), how_(how) {}
  void start() override { look_again(); }

 protected:
  void look_again() override;
  bool claims() const override { return false; }

 private:
  void act(const Line& line);
  // Its owner does not look at the container.
  Error not_ours();
  void done(int code, const std::string& name);

  const Eviction how_;
  bool acted_ = false;
};

}  // namespace simba::zookeeper
