#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stores/zookeeper/errand.h"

namespace simba::zookeeper {

// Gets a place in the queue, or asks again from it.
class Take : public Errand {
 public:
  using Errand::Errand;
  void start() override;

 protected:
  void look_again() override;

 private:
  enum class Parents : bool { kThere, kMake };
  void join(Parents parents);
  void joined(int code, const std::string& path, const Stat& stat, LocalTime sent, Parents parents);
  // False: what was in doubt was given up meanwhile.
  bool doubt(Places::Doubt doubt);
  void find_own(std::vector<std::string> names, const Line& line);
  // False: the stat is no node's.
  bool add_place(const std::string& name, const Stat& stat);
  void decide(const Line& line);
  void grant(const Place& place, const Line& line);
  void own(const Place& place, int container_version);
  void refuse(const Place& place);
  void turn_away(const Place& place);
  void leave(const Place& place, std::function<void()> done);

  LocalTime committed_ = LocalTime::min();  // until when the session lives, by our own write
  bool joined_ = false;                     // in this call
  int parents_code_ = 0;                    // the first that could not be made, and why
  bool has_root_ = false;                   // what all of them stand on is there
};

}  // namespace simba::zookeeper
