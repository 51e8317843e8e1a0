#include "torture/order_search.h"

#include <algorithm>
#include <tuple>

namespace simba::torture {

OrderSearch::OrderSearch(const LeaseHistory& history)
    : history_(history),
      lease_(history),
      head_(static_cast<Node>(2 * history.ops.size())),
      links_(2 * history.ops.size() + 1) {
  std::vector<Node> nodes(2 * history.ops.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<Node>(i);
  // At the same instant begins come first: calls may touch.
  std::sort(nodes.begin(), nodes.end(), [this](Node a, Node b) {
    return std::tuple(time_of(a), a % 2, a) < std::tuple(time_of(b), b % 2, b);
  });
  Node last = head_;
  for (const Node node : nodes) {
    links_[last].after = node;
    links_[node].before = last;
    last = node;
  }
  links_[last].after = head_;
  links_[head_].before = last;
}

void OrderSearch::unlink(Node node) {
  links_[links_[node].before].after = links_[node].after;
  links_[links_[node].after].before = links_[node].before;
}

void OrderSearch::relink(Node node) {
  links_[links_[node].before].after = node;
  links_[links_[node].after].before = node;
}

void OrderSearch::take(std::size_t op) {
  unlink(static_cast<Node>(2 * op + 1));  // first: who walks along goes on behind the begin
  unlink(static_cast<Node>(2 * op));
  taken_.push_back(op);
  set_ ^= mix(op);
}

void OrderSearch::give_back(std::size_t down_to) {
  while (taken_.size() > down_to) {
    const std::size_t op = taken_.back();
    taken_.pop_back();
    relink(static_cast<Node>(2 * op));
    relink(static_cast<Node>(2 * op + 1));
    set_ ^= mix(op);
  }
}

OrderSearch::Frame OrderSearch::enter(LeaseState state) {
  Frame frame;
  std::vector<std::size_t> open;
  bool goes_on = true;
  while (goes_on) {
    goes_on = false;
    bool is_late = false, has_grant = false;
    open.clear();
    for (Node node = links_[head_].after; node != head_ && node % 2 == 0;
         node = links_[node].after) {
      ++work_;
      if (lease_.fits(op_of(node), state, is_late)) {
        has_grant = has_grant || op_of(node).kind == Op::Kind::kGrant;
        take(node / 2);
      } else {
        open.push_back(node / 2);
      }
    }
    goes_on = is_late && has_grant;  // the later one may have prolonged it
  }
  frame.taken = taken_.size();
  if (links_[head_].after == head_) return frame;
  Node end = links_[head_].after;
  while (end % 2 == 0) end = links_[end].after;
  if (taken_.size() >= most_taken_) {
    most_taken_ = taken_.size();
    stuck_at_ = time_of(end);
  }
  if (!seen_.insert(mix(set_) ^ state.hash()).second) return frame;
  // Who has to happen first is tried first.
  std::sort(open.begin(), open.end(), [this](std::size_t a, std::size_t b) {
    return history_.ops[a].after < history_.ops[b].after;
  });
  std::vector<LeaseState> states;
  for (const std::size_t op : open) {
    states.clear();
    lease_.after(history_.ops[op], state, time_of(end), states);
    for (const LeaseState& next : states) frame.choices.push_back({op, next});
  }
  return frame;
}

Order::Verdict OrderSearch::run() {
  std::vector<Frame> frames;
  frames.push_back(enter({}));
  while (links_[head_].after != head_) {
    if (work_ > history_.rules.most_work) return Order::Verdict::kNotDecided;
    Frame& frame = frames.back();
    give_back(frame.taken);
    if (frame.tried == frame.choices.size()) {
      frames.pop_back();
      if (frames.empty()) return Order::Verdict::kNone;
      continue;
    }
    const Choice choice = frame.choices[frame.tried++];
    take(choice.op);
    frames.push_back(enter(choice.state));
  }
  return Order::Verdict::kFound;
}

}  // namespace simba::torture
