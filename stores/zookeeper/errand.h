#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simba/store.h"
#include "stores/zookeeper/session.h"

namespace simba::zookeeper {

// A claim, kept for as long as its requests are under way: the caller may have given up waiting.
struct Wish {
  std::string mutex, wire_id;
  Token token = 0, floor = 0;
  milliseconds ttl{}, transition{};

  milliseconds lease() const { return ttl + transition; }
  static Wish of(const Claim& claim);
};

// Where errands of one call run: the session, its driver, and how long anybody waits for them.
struct Round {
  std::shared_ptr<Session> session;
  std::shared_ptr<Handle> handle;
  LocalTime began{}, deadline{};
};

// One mutex's part of a call: requests, each made when the one before it is answered, on the
// driver's thread. Ends with exactly one answer.
//
// Threads: one request at a time, or with a lock of its own. No lock of ours is held in requests.
class Errand : public std::enable_shared_from_this<Errand> {
 public:
  using Finish = std::function<void(Answer)>;

  Errand(Round round, Wish wish, Finish finish)
      : round_(std::move(round)), wish_(std::move(wish)), finish_(std::move(finish)) {}
  virtual ~Errand() = default;
  virtual void start() = 0;

 protected:
  // Lists the queue. `seen` gets an empty line where there is none.
  void list(std::function<void(const Line&)> seen);
  // The same, with all that was committed before: of our own writes also those that were never
  // answered.
  void list_synced(std::function<void(const Line&)> seen);
  // Answers with who owns, by the line; asks for what is not known of it.
  void answer_with_owner(const Line& line);
  // The same, and the node before ours is watched on behalf of the wish.
  void answer_as_waiter(const Line& line, const std::string& predecessor);

  // Whom the container names, by node, and in which version: known of the line's, or asked for.
  using Evicted = std::function<void(const std::string& name, const Container& container)>;
  void ask_evicted(const Line& line, Evicted seen);
  void tell(const Leader& leader, bool evicted);

  void answer(Answer result);
  void fail(int code, const std::string& doing);
  bool is_over();  // nobody waits any more: answers, and is true

  Session& session() { return *round_.session; }
  Handle& handle() { return *round_.handle; }
  const Wish& wish() const { return wish_; }
  const Round& round() const { return round_; }
  std::string container() { return session().container(wish_.mutex); }
  std::string node(const std::string& name) { return session().node(wish_.mutex, name); }
  template <class Derived>
  std::shared_ptr<Derived> self() {
    return std::static_pointer_cast<Derived>(shared_from_this());
  }
  virtual void look_again() = 0;  // what was seen has gone meanwhile
  virtual bool claims() const { return !wish_.wire_id.empty(); }

 private:
  void learn_leader(const Line& line);
  void learn_eviction(const Line& line, const Leader& leader);

  const Round round_;
  const Wish wish_;
  Finish finish_;
  std::atomic_flag answered_;
};

// Reads who owns.
class Look : public Errand {
 public:
  using Errand::Errand;
  void start() override { look_again(); }

 protected:
  void look_again() override;
};

// What an owner may be told: counted so that it holds from before its call began.
Observation granted(const Wish& wish, Token token, const Round& round, LocalTime lives_until,
                    Term& term);

}  // namespace simba::zookeeper
