#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "simba/store.h"
#include "simba/time.h"

namespace simba::zookeeper {

// A node of ours: a place in the queue of a mutex. The first place owns.
struct Place {
  std::string mutex, wire_id;
  std::string name;          // of the node, within the container of the mutex
  Token token = 0;           // its czxid
  std::int64_t session = 0;  // whose end is its end
};

// What a place may claim, in local time.
struct Term {
  LocalTime acquired{}, ttl_end{}, expires{};
  int container_version = 0;  // changes when somebody is evicted
};

// A node that may stand there, although nobody wants it any more.
struct Lost {
  std::string mutex, wire_id;
};

// The container of a mutex, as one answer showed it. Each eviction raises its version; one that was
// removed and made again begins at 0.
struct Container {
  std::int64_t czxid = 0;
  int version = 0;
};

// The queue of a mutex, as one answer showed it.
struct Line {
  std::vector<std::string> order;  // the first owns
  Container container;
};

// The places of one session, and what ends them: a session knows no lease but its own, so an owner
// that does not renew, and a waiter nobody cares for any more, would stand there for as long as the
// session lives. Here each has a time at which its node is deleted.
//
// Pure bookkeeping: no I/O, no clock. Threads: any.
class Places {
 public:
  using Key = std::string;
  static constexpr std::size_t kMostWatched = 1'000'000;  // bytes

  // `overhead`: what a path has before the name of the mutex.
  explicit Places(std::size_t overhead = 0, std::size_t most_watched = kMostWatched)
      : overhead_(overhead), most_watched_(most_watched) {}

  static Key key(std::string_view mutex, std::string_view wire_id);

  // Whether a node of this wire id may stand there although it is not known as a place.
  enum class Doubt : std::uint8_t {
    kNone,
    kUnderWay,   // its creation is not answered yet: what is asked after it sees it
    kAmbiguous,  // the answer was lost
    kGivenUp,    // and nobody asked again: it is being looked for, to delete it
  };
  // A node is about to be made. Says what was known before; unless kNone, none must be made. What
  // is in doubt is not given up before `until`.
  Doubt begin_join(std::string_view mutex, std::string_view wire_id, LocalTime until);
  // False: it was given up meanwhile, and remains so.
  bool set_doubt(std::string_view mutex, std::string_view wire_id, Doubt doubt, LocalTime until);
  // It was looked for after the answer was lost, and does not stand there.
  void end_ambiguity(std::string_view mutex, std::string_view wire_id);

  // A node of ours was made, or found. `lease` is what it has until it is granted or asked again.
  void add(const Place& place, milliseconds lease, LocalTime now);
  void erase(std::string_view mutex, std::string_view wire_id);
  // The session has ended, and its nodes with it. Returns the keys of all.
  std::vector<Key> clear();

  std::optional<Place> find(std::string_view mutex, std::string_view wire_id) const;
  bool is_empty() const;
  std::optional<std::string> any_node() const;  // "MUTEX/NAME"

  // A waiter asked again. False: it is on its way out, evicted, or its term is over.
  bool keep(std::string_view mutex, std::string_view wire_id, milliseconds lease, LocalTime now);
  // It owns from here on, or owned already and its term goes on. False: on its way out, or evicted.
  bool grant(std::string_view mutex, std::string_view wire_id, const Term& term);
  // The term, if there is one that runs: granted, not evicted, not past its end.
  std::optional<Term> term(std::string_view mutex, std::string_view wire_id, Token token,
                           LocalTime now) const;
  // A renewal under way holds off the end of the place. Each true answer needs an end_renewal().
  bool begin_renewal(std::string_view mutex, std::string_view wire_id, Token token, LocalTime now);
  void end_renewal(std::string_view mutex, std::string_view wire_id);
  void update_container(std::string_view mutex, std::string_view wire_id, int version);
  // Its lease stays, but nobody can renew it. Where it has none yet its time is over.
  void evict(std::string_view mutex, std::string_view node);
  // No renewal from here on: it is being deleted.
  void leave(std::string_view mutex, std::string_view wire_id);

  // Of a node of ours, by its name; none: of another session.
  std::optional<std::pair<Place, Term>> at(std::string_view mutex, std::string_view node) const;

  // Whose time is over. They are on their way out now; `again` is when they are named again.
  std::vector<Place> take_expired(LocalTime now, LocalTime again);
  // Those in doubt whose time has come. They are given up, and named again only if they could not
  // be looked for.
  std::vector<Lost> take_lost(LocalTime now);
  void not_found_out(const Lost& lost, LocalTime again);
  // When one of either kind is due, or a moment sooner; LocalTime::max(): none.
  LocalTime next_due() const;

  // A waiter with a watch is cared for: it does not expire.
  void add_watch(const Key& id);
  void drop_watch(const Key& id, LocalTime now);

  // After a reconnect the driver names all nodes that are watched in one request, and a server
  // refuses one of more than a megabyte, for ever. So there is a limit: who comes later polls.
  enum class Hearing : std::uint8_t {
    kNew,      // the node is to be watched
    kAlready,  // it is
    kFull,     // it must not be
  };
  // The waiter wants to hear when this node of its mutex goes.
  Hearing watch_node(std::string_view mutex, std::string_view wire_id, std::string_view node);
  // It could not be watched after all.
  void forget_node(std::string_view mutex, std::string_view wire_id);
  // The same for an observer, which is told by its mutex.
  Hearing watch_leader(std::string_view mutex, std::string_view node);
  // False while a waiter is not told of the node before it.
  bool hears(const Key& id) const;
  // The node has changed. Returns who wanted to hear of it.
  std::vector<Key> changed(std::string_view mutex, std::string_view node);
  // Whether it changed while the waiter had no watch; asked once.
  bool take_missed(const Key& id);

  // What the queue of a waiter was a moment ago: for its next question, if that comes at once.
  void put_line(const Key& id, Line line, LocalTime now);
  std::optional<Line> take_line(std::string_view mutex, std::string_view wire_id, LocalTime now);

 private:
  struct Entry;
  using Watched = std::unordered_multimap<std::string, Entry*>;
  // Thousands may wait: what stands in a table already is not kept again.
  struct Entry {
    const Key* key = nullptr;  // its own, in entries_
    std::string name;          // of the node
    Token token = 0;
    std::int64_t session = 0;
    Term term;
    milliseconds lease{};
    LocalTime ends = LocalTime::max();  // where it stands in by_end_
    LocalTime asked{};
    Watched::value_type* watched = nullptr;  // the node before it, in watched_
    std::unique_ptr<std::pair<LocalTime, Line>> line;
    unsigned watches = 0;
    unsigned renewals = 0;
    bool granted = false;
    bool evicted = false;
    bool leaving = false;
    bool missed = false;
    bool deaf = false;

    std::string_view mutex() const;
    Place place() const;
  };
  struct Doubtful {
    Doubt doubt = Doubt::kNone;
    LocalTime until{};  // from then on nobody is expected to ask
  };
  struct Node {
    std::string_view mutex, name;
  };
  struct NodeHash {
    using is_transparent = void;
    std::size_t operator()(const Node& node) const;
    std::size_t operator()(const Entry* entry) const;
  };
  struct NodeEqual {
    using is_transparent = void;
    bool operator()(const Entry* a, const Entry* b) const { return a == b; }
    bool operator()(const Node& node, const Entry* entry) const;
    bool operator()(const Entry* entry, const Node& node) const { return (*this)(node, entry); }
  };

  bool runs(const Entry* entry, Token token, LocalTime now) const;
  void set_end(Entry& entry);
  void move_end(Entry& entry, LocalTime ends);
  void unwatch(Entry& entry);
  bool has_room(const std::string& node);
  Entry* get(std::string_view mutex, std::string_view wire_id);
  const Entry* get(std::string_view mutex, std::string_view wire_id) const;
  Entry* at_node(std::string_view mutex, std::string_view node) const;

  const std::size_t overhead_;
  const std::size_t most_watched_;
  mutable std::mutex guard_;
  std::unordered_map<Key, Entry> entries_;                 // guarded by guard_
  std::set<std::pair<LocalTime, Entry*>> by_end_;          // guarded by guard_
  std::unordered_set<Entry*, NodeHash, NodeEqual> nodes_;  // guarded by guard_
  // "MUTEX/NODE" to waiters; null: nobody waits for it any more, but it is still watched. Who comes
  // next takes its place, so that no node stands here more often than it had waiters at once.
  Watched watched_;                           // guarded by guard_
  std::size_t watched_bytes_ = 0;             // guarded by guard_
  std::unordered_map<Key, unsigned> early_;   // guarded by guard_; watches without a place
  std::unordered_map<Key, Doubtful> doubts_;  // guarded by guard_
  LocalTime next_lost_ = LocalTime::max();    // guarded by guard_; none of doubts_ is due before
};

}  // namespace simba::zookeeper
