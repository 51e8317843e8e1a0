#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "torture/lease_object.h"

namespace simba::torture {

// It is the search of Wing and Gong: of the calls that began before any open one ended, each may be
// the next. Three things keep it near linear. Tokens say in which order terms come, so a term is a
// state, entered once. A call that fits the state and does not end it is taken at once, as any
// order stays one with that call first. And what was tried (the set of calls, the state) is not
// tried again (Lowe's memory); the set is known by a hash of 64 bits.
//
// Threads: one.
class OrderSearch {
 public:
  explicit OrderSearch(const LeaseHistory& history);
  Order::Verdict run();
  // When the call ended before which none could be put.
  LocalTime stuck_at() const { return stuck_at_; }

 private:
  // The begin of a call (even) or its end (odd), in a list by time. Those of a call that has
  // happened are not in it.
  using Node = std::uint32_t;
  struct Link {
    Node before = 0, after = 0;
  };
  struct Choice {
    std::size_t op = 0;
    LeaseState state;
  };
  struct Frame {
    std::vector<Choice> choices;
    std::size_t tried = 0;
    std::size_t taken = 0;  // calls that had happened before it
  };

  const Op& op_of(Node node) const { return history_.ops[node / 2]; }
  LocalTime time_of(Node node) const {
    return node % 2 == 0 ? op_of(node).before : op_of(node).after;
  }
  void unlink(Node node);
  void relink(Node node);
  void take(std::size_t op);
  void give_back(std::size_t down_to);
  // Lets happen all that fits; the rest are choices.
  Frame enter(LeaseState state);

  const LeaseHistory& history_;
  const LeaseObject lease_;
  const Node head_;
  std::vector<Link> links_;
  std::vector<std::size_t> taken_;
  std::uint64_t set_ = 0;
  std::unordered_set<std::uint64_t> seen_;
  std::size_t work_ = 0, most_taken_ = 0;
  LocalTime stuck_at_{};
};

}  // namespace simba::torture
