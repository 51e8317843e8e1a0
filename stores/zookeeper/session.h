#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simba/error.h"
#include "simba/zookeeper.h"
#include "stores/kit/backoff.h"
#include "stores/kit/watchers.h"
#include "stores/kit/worker.h"
#include "stores/zookeeper/handle.h"
#include "stores/zookeeper/leaders.h"
#include "stores/zookeeper/places.h"
#include "stores/zookeeper/session_lease.h"

namespace simba::zookeeper {

// One session with the servers after another: when one has ended, the next is opened. The session's
// thread opens and closes, keeps its lease, and deletes nodes whose time is over; it never decides
// to claim.
//
// Threads: any.
class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(ZookeeperOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // What the thread does until it is stopped; then the session is closed and its nodes go.
  void run(const kit::StopSignal& stop);

  // The driver, connected. Throws Error when the deadline passes before.
  std::shared_ptr<Handle> connected(LocalTime deadline);
  bool is_connected() const { return is_connected_; }

  // An answer to a write that was sent then by this handle: the session lives. Returns until when.
  LocalTime committed(const Handle& handle, LocalTime sent);
  // Until when the session certainly lives; in the past for another session's handle.
  LocalTime lives_until(const Handle& handle) const;
  milliseconds lease() const;  // its length when it has just been proven

  std::string container(std::string_view mutex) const;  // the path
  std::string node(std::string_view mutex, std::string_view name) const;
  const std::string& base() const { return options_.base; }
  const std::string& where() const { return where_; }  // "host:port,host:port/chroot", for errors
  const ACL_vector& acl() const { return acl_; }
  const ZookeeperOptions& options() const { return options_; }

  Places& places() { return places_; }
  // Of a node of ours: nobody can renew it, and where nobody owned it yet it goes at once.
  void evict(std::string_view mutex, std::string_view node);
  // The thread looks again by then, at the latest, at what is due.
  void hurry(LocalTime due);
  // Hints go to keys of Places; an observer's key has no wire id.
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake, std::shared_ptr<Session> self);
  Leaders& leaders() { return leaders_; }

 private:
  class Ticket;

  void on_state(int state);
  void on_connected();
  void put_off(LocalTime now);  // with guard_ held: the next session is not opened at once
  void on_change(const std::string& path);
  void wake_waiters(const std::string& mutex, std::vector<Places::Key> waiters);
  void open();
  void close();
  void replace_if_dead(LocalTime now);
  void prove(LocalTime now);
  void proven(const Handle* handle, LocalTime sent, bool wrote, int code);
  std::shared_ptr<Handle> handle_if_connected() const;
  void delete_expired(LocalTime now);
  void delete_lost(LocalTime now);
  void wake_missed();
  LocalTime next_look() const;  // with guard_ held
  Error trouble() const;        // with guard_ held

  const ZookeeperOptions options_;
  const std::string where_;
  ACL_vector acl_{};
  std::vector<ACL> entries_;
  Places places_;
  Leaders leaders_;
  const std::shared_ptr<kit::Watchers> watchers_ = std::make_shared<kit::Watchers>();
  const kit::StopSignal bell_;  // rung to make the thread look

  std::mutex opening_;  // held while a handle is made; before guard_
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::shared_ptr<Handle> handle_;   // guarded by guard_; null: being opened
  LocalTime opened_{};               // guarded by guard_; before the handle was made
  bool is_dead_ = true;              // guarded by guard_; the session has ended
  std::int64_t id_ = 0;              // guarded by guard_; 0: not yet connected
  SessionLease lease_;               // guarded by guard_
  std::optional<Error> last_;        // guarded by guard_; why there is no connection
  LocalTime next_proof_{};           // guarded by guard_
  LocalTime next_open_{};            // guarded by guard_
  LocalTime look_at_{};              // guarded by guard_; when the thread looks next
  bool reads_root_ = true;           // guarded by guard_
  std::vector<std::string> missed_;  // guarded by guard_; hints to give again
  // guarded by guard_
  kit::Backoff backoff_{milliseconds{100}, milliseconds{5'000}};
  std::atomic<bool> is_connected_{false};
};

// A session and the thread that tends it; the end of this is the end of both.
class Connection {
 public:
  explicit Connection(const ZookeeperOptions& options);
  const std::shared_ptr<Session>& session() const { return session_; }

  // The one of these options in this process.
  static std::shared_ptr<Connection> shared(const ZookeeperOptions& options);

 private:
  const std::shared_ptr<Session> session_;
  const kit::Worker worker_;
};

}  // namespace simba::zookeeper
