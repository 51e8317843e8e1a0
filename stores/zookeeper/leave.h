#pragma once

#include <string>

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
  void check_node(const std::string& name);
  void not_there();
  void remove_node(const std::string& name);
};

}  // namespace simba::zookeeper
