#include "stores/zookeeper/session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "stores/kit/per_process.h"
#include "stores/kit/this_process.h"
#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/leave.h"
#include "stores/zookeeper/nodes.h"

namespace simba::zookeeper {
namespace {

constexpr milliseconds kDeleteAgain{1'000};  // a deletion that failed
// A session is proven alive this often within its timeout.
constexpr int kProofs = 6;
// A handle that has not got a session by then is made anew: the lease counts from when it was made.
milliseconds patience_of(const ZookeeperOptions& options) {
  constexpr milliseconds kLeast{3'000};
  return std::max(options.session_timeout / 3, kLeast);
}

char kWorld[] = "world", kAnyone[] = "anyone", kAuth[] = "auth", kNone[] = "";

std::vector<ACL> acl_entries(const ZookeeperOptions& options) {
  using Acl = ZookeeperOptions::Acl;
  Acl acl = options.acl;
  if (acl == Acl::kAutomatic) acl = options.user.empty() ? Acl::kOpen : Acl::kCreatorRead;
  if (acl == Acl::kOpen) return {{ZOO_PERM_ALL, {kWorld, kAnyone}}};
  std::vector<ACL> entries{{ZOO_PERM_ALL, {kAuth, kNone}}};
  if (acl == Acl::kCreatorRead) entries.push_back({ZOO_PERM_READ, {kWorld, kAnyone}});
  return entries;
}

}  // namespace

// The hints of one waiter or observer.
class Session::Ticket : public Watch {
 public:
  Ticket(std::shared_ptr<Session> session, Places::Key key, std::unique_ptr<Watch> hints)
      : session_(std::move(session)), key_(std::move(key)), hints_(std::move(hints)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  ~Ticket() override {
    hints_.reset();
    if (!process_.is_still()) return;
    if (!key_.ends_with('/')) {
      session_->places_.drop_watch(key_, BootClock::now());
      session_->hurry(session_->places_.next_due());
      return;
    }
    session_->leaders_.drop_observer(std::string_view(key_).substr(0, key_.size() - 1));
  }

  bool is_live() const override {
    return session_->is_connected() && session_->places_.hears(key_);
  }

 private:
  const kit::ThisProcess process_;
  const std::shared_ptr<Session> session_;
  const Places::Key key_;  // of an observer: without a wire id
  std::unique_ptr<Watch> hints_;
};

Session::Session(ZookeeperOptions options)
    : options_(std::move(options)),
      where_(options_.servers + options_.chroot),
      entries_(acl_entries(options_)),
      places_(options_.chroot.size() + options_.base.size() + 1) {
  acl_.count = static_cast<int>(entries_.size());
  acl_.data = entries_.data();
}

std::string Session::container(std::string_view mutex) const {
  return options_.base + '/' + std::string(mutex);
}

std::string Session::node(std::string_view mutex, std::string_view name) const {
  return container(mutex) + '/' + std::string(name);
}

// --- what calls ask
// -------------------------------------------------------------------------------

Error Session::trouble() const {
  if (last_) return *last_;
  return {Errc::kUnreachable, "zookeeper at " + where_ +
                                  ": no server has given a session in time: are they up, and do "
                                  "they have a quorum?"};
}

std::shared_ptr<Handle> Session::connected(LocalTime deadline) {
  std::unique_lock lock(guard_);
  while (!is_connected_) {
    if (last_ && !last_->is_transient()) throw Error(*last_);
    const nanoseconds left = deadline - BootClock::now();
    if (left <= nanoseconds::zero()) throw trouble();
    changed_.wait_for(lock, left);
  }
  return handle_;
}

LocalTime Session::committed(const Handle& handle, LocalTime sent) {
  const std::lock_guard lock(guard_);
  if (&handle != handle_.get() || id_ == 0) return LocalTime::min();
  lease_.committed(sent);
  lease_.answered(sent, BootClock::now());
  next_proof_ = std::max(next_proof_, sent + lease_.timeout() / kProofs);  // it was one
  return lease_.until();
}

LocalTime Session::lives_until(const Handle& handle) const {
  const std::lock_guard lock(guard_);
  return &handle == handle_.get() && id_ != 0 ? lease_.until() : LocalTime::min();
}

milliseconds Session::lease() const {
  const std::lock_guard lock(guard_);
  return lease_.length();
}

std::unique_ptr<Watch> Session::watch(std::string_view mutex, std::string_view wire_id,
                                      std::function<void()> wake, std::shared_ptr<Session> self) {
  Places::Key key = Places::key(mutex, wire_id);
  auto hints = kit::Watchers::add(watchers_, key, std::move(wake));
  if (wire_id.empty()) {
    leaders_.add_observer(mutex);
  } else {
    places_.add_watch(key);
    if (places_.take_missed(key)) {
      // Not from here: whoever asks for a watch may hold what the hint needs.
      const std::lock_guard lock(guard_);
      missed_.push_back(key);
      eventfd_write(bell_.descriptor(), 1);
    }
  }
  return std::make_unique<Ticket>(std::move(self), std::move(key), std::move(hints));
}

// --- what the driver tells
// ------------------------------------------------------------------------

void Session::on_state(int state) {
  const std::lock_guard opening(opening_);  // not before the handle is where it belongs
  std::vector<Places::Key> ended;
  {
    const std::lock_guard lock(guard_);
    if (!handle_) return;  // it is being closed
    is_connected_ = false;
    if (state == ZOO_CONNECTED_STATE) {
      on_connected();
    } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
      if (state == ZOO_AUTH_FAILED_STATE) {
        last_ = failure(ZAUTHFAILED, "open a session", where_);
        put_off(BootClock::now());
      }
      is_dead_ = true;
      id_ = 0;
      ended = places_.clear();
    }
    changed_.notify_all();
    eventfd_write(bell_.descriptor(), 1);
  }
  // Who waited waits no more, and has to ask for a new place.
  for (const Places::Key& key : ended) watchers_->wake(key);
}

// With guard_ held.
void Session::on_connected() {
  const milliseconds timeout = handle_->timeout();
  const std::int64_t id = handle_->session();
  const LocalTime leases_end = id == id_ ? lease_.until() : LocalTime{};
  // Another server, or this one with other settings, may grant it less than it had.
  if (id == id_) lease_.shorten(timeout);
  if (timeout < 3 * options_.tick) {
    last_ = Error(Errc::kMisconfigured,
                  "zookeeper at " + where_ + ": the servers grant a session timeout of " +
                      std::to_string(timeout.count()) + " ms; with tick " +
                      std::to_string(options_.tick.count()) + " ms it must be at least " +
                      std::to_string(3 * options_.tick.count()) +
                      " ms: raise session-timeout, or set tick to the tickTime of the servers");
    // The driver asks for no more than it once got; another session asks for all of it again. What
    // this one holds stays until no lease of it runs.
    is_dead_ = true;
    const LocalTime before = next_open_;
    put_off(BootClock::now());
    next_open_ = std::max({next_open_, leases_end, before});
    return;
  }
  last_.reset();
  is_dead_ = false;
  is_connected_ = true;
  next_proof_ = LocalTime{};
  if (id == id_) return;
  id_ = id;
  lease_.begin(opened_, timeout, options_.tick);
}

void Session::put_off(LocalTime now) {
  std::random_device random;
  next_open_ = now + backoff_.next(random());
}

void Session::on_change(const std::string& path) {
  const auto node = read_changed(path, options_.base);
  if (!node) return;
  std::vector<Places::Key> waiters = places_.changed(node->mutex, node->name);
  if (!waiters.empty()) wake_waiters(node->mutex, std::move(waiters));
  watchers_->wake(Places::key(node->mutex, {}));
}

// The first thing a woken waiter asks for is the queue: it is fetched before the hint is given, so
// that the hint's way through the engine and the answer's do not add up. That a node of ours is the
// first stays true for as long as it is there, so what was read a moment before the claim counts.
void Session::wake_waiters(const std::string& mutex, std::vector<Places::Key> waiters) {
  std::shared_ptr<Handle> handle;
  {
    const std::lock_guard lock(guard_);
    handle = handle_;
  }
  if (!handle) return;
  handle->children(container(mutex),
                   [this, waiters = std::move(waiters)](int code, std::vector<std::string> names,
                                                        const Stat& stat) {
                     if (code == ZOK) {
                       const LocalTime now = BootClock::now();
                       Line line{latch_order(std::move(names)), read_container(stat)};
                       for (std::size_t i = 1; i < waiters.size(); ++i) {
                         places_.put_line(waiters[i], line, now);
                       }
                       places_.put_line(waiters.front(), std::move(line), now);  // mostly alone
                     }
                     for (const Places::Key& key : waiters) watchers_->wake(key);
                   });
}

// --- the thread
// -----------------------------------------------------------------------------------

void Session::hurry(LocalTime due) {
  const std::lock_guard lock(guard_);
  // Without a connection nothing can be deleted; the next one rings.
  if (is_connected_ && due < look_at_) eventfd_write(bell_.descriptor(), 1);
}

void Session::evict(std::string_view mutex, std::string_view node) {
  places_.evict(mutex, node);
  hurry(places_.next_due());
}

void Session::run(const kit::StopSignal& stop) {
  while (!stop.is_requested()) {
    eventfd_t rung = 0;
    eventfd_read(bell_.descriptor(), &rung);
    LocalTime now = BootClock::now();
    replace_if_dead(now);
    now = BootClock::now();
    delete_expired(now);
    delete_lost(now);
    prove(now);
    wake_missed();
    LocalTime at;
    {
      const std::lock_guard lock(guard_);
      at = look_at_ = next_look();
    }
    // What became due between the look and here rang the bell.
    kit::wait_for(bell_.descriptor(), POLLIN, at, &stop);
  }
  close();
}

LocalTime Session::next_look() const {
  if (is_connected_) return std::min(next_proof_, places_.next_due());
  if (is_dead_) return next_open_;
  // The driver looks for a server by itself; whatever it finds rings the bell.
  if (id_ != 0 || (last_ && !last_->is_transient())) return LocalTime::max();
  return opened_ + patience_of(options_);
}

void Session::replace_if_dead(LocalTime now) {
  {
    const std::lock_guard lock(guard_);
    const bool is_stuck = handle_ && id_ == 0 && !is_connected_ &&
                          !(last_ && !last_->is_transient()) &&
                          now >= opened_ + patience_of(options_);
    if ((!is_dead_ && !is_stuck) || now < next_open_) return;
  }
  close();
  open();
}

void Session::close() {
  std::shared_ptr<Handle> closing;
  {
    const std::lock_guard lock(guard_);
    is_connected_ = false;
    id_ = 0;
    is_dead_ = true;
    closing = std::move(handle_);
    handle_.reset();
    changed_.notify_all();
  }
  places_.clear();
  if (closing) closing->close();  // not under a lock: its threads may be waiting for it
}

void Session::open() {
  const std::lock_guard opening(opening_);
  const LocalTime began = BootClock::now();
  try {
    auto handle = std::make_shared<Handle>(
        options_.servers + options_.chroot,
        Handle::Certificates{options_.tls_ca, options_.tls_certificate, options_.tls_key},
        options_.session_timeout,
        Handle::Events{[this](int state) { on_state(state); },
                       [this](const std::string& path) { on_change(path); }});
    if (!options_.user.empty()) handle->authenticate(options_.user, options_.password);
    const std::lock_guard lock(guard_);
    handle_ = std::move(handle);
    opened_ = began;
    is_dead_ = false;
  } catch (const Error& error) {
    const std::lock_guard lock(guard_);
    last_ = Error(Errc::kUnreachable, error.what());
    put_off(BootClock::now());
  }
}

// A request at least every sixth of the timeout: while nodes of ours stand there a transaction that
// changes nothing, unless a renewal was one meanwhile, which proves that the session lives; else a
// read, so that a first claim finds the session known to be heard of.
void Session::prove(LocalTime now) {
  std::shared_ptr<Handle> handle;
  std::string path = "/";
  {
    const std::lock_guard lock(guard_);
    if (!is_connected_ || now < next_proof_) return;
    next_proof_ = now + lease_.timeout() / kProofs;
    handle = handle_;
    const auto node = reads_root_ ? std::nullopt : places_.any_node();
    if (node) path = options_.base + '/' + *node;
  }
  const Handle* which = handle.get();
  if (places_.is_empty()) {
    handle->exists(path, [this, which, now](int code) { proven(which, now, false, code); });
  } else {
    handle->check({{path, -1}}, [this, which, now](int code, const std::vector<int>&) {
      proven(which, now, true, code);
    });
  }
}

void Session::proven(const Handle* handle, LocalTime sent, bool wrote, int code) {
  const std::lock_guard lock(guard_);
  if (handle != handle_.get() || id_ == 0) return;
  if (code == ZNOAUTH) reads_root_ = false;
  if (code != ZOK && code != ZNONODE && code != ZNOAUTH) return;
  backoff_.reset();  // not before: that credentials are refused is heard once a session is there
  if (wrote && code == ZOK) lease_.committed(sent);
  lease_.answered(sent, BootClock::now());
}

std::shared_ptr<Handle> Session::handle_if_connected() const {
  const std::lock_guard lock(guard_);
  return is_connected_ ? handle_ : nullptr;
}

void Session::delete_expired(LocalTime now) {
  const std::shared_ptr<Handle> handle = handle_if_connected();
  if (!handle) return;
  for (Place& place : places_.take_expired(now, now + kDeleteAgain)) {
    const std::string path = node(place.mutex, place.name);
    handle->remove(path, [this, place = std::move(place)](int code) {
      if (code == ZOK || code == ZNONODE) places_.erase(place.mutex, place.wire_id);
    });
  }
}

// The answer to a creation was lost, and whoever wanted the place has given up: its node, if it is
// there, would stand in the queue for as long as the session lives.
void Session::delete_lost(LocalTime now) {
  const std::shared_ptr<Handle> handle = handle_if_connected();
  if (!handle) return;
  for (Lost& lost : places_.take_lost(now)) {
    Wish wish;
    wish.mutex = lost.mutex;
    wish.wire_id = lost.wire_id;
    const auto done = [this, lost = std::move(lost)](const Answer& answer) {
      if (!std::holds_alternative<Error>(answer)) return;
      places_.not_found_out(lost, BootClock::now() + kDeleteAgain);
      hurry(places_.next_due());
    };
    const Round round{shared_from_this(), handle, now, now + options_.session_timeout};
    std::make_shared<Leave>(round, std::move(wish), done)->start();
  }
}

void Session::wake_missed() {
  std::vector<std::string> keys;
  {
    const std::lock_guard lock(guard_);
    keys.swap(missed_);
  }
  for (const std::string& key : keys) watchers_->wake(key);
}

// --- one per process
// ------------------------------------------------------------------------------

Connection::Connection(const ZookeeperOptions& options)
    : session_(std::make_shared<Session>(options)),
      worker_("simba-zookeeper",
              [session = session_](const kit::StopSignal& stop) { session->run(stop); }) {}

std::shared_ptr<Connection> Connection::shared(const ZookeeperOptions& options) {
  std::string identity;
  for (const std::string* each :
       {&options.servers, &options.chroot, &options.base, &options.user, &options.password,
        &options.tls_ca, &options.tls_certificate, &options.tls_key}) {
    identity.append(std::to_string(each->size())).append(1, ' ').append(*each).append(1, '\n');
  }
  for (const auto each : {static_cast<milliseconds::rep>(options.acl),
                          options.session_timeout.count(), options.tick.count()}) {
    identity.append(std::to_string(each)).append(1, '\n');
  }
  return kit::PerProcess<Connection>::get(identity,
                                          [&] { return std::make_shared<Connection>(options); });
}

}  // namespace simba::zookeeper
