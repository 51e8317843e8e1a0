#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stores/zookeeper/errand.h"

namespace simba::zookeeper {

// Gives up the place, or the mutex.
class Leave : public Errand {
 public:
  using Errand::Errand;
  void start() override;

 protected:
  void look_again() override;

 private:
  // One after the other: that of this session may stand behind one of an earlier session.
  void remove_each(std::vector<std::string> names);
  void none_left();
  void remove_node(const std::string& name, std::function<void()> done);

  bool keeps_one_ = false;  // of another term
};

}  // namespace simba::zookeeper
