#include "stores/redis/node.h"

#include <exception>
#include <utility>

#include "simba/error.h"

namespace simba::redis {
namespace {

// The one that is shared, and, where calls wait for replicas, as many for renewals as an executor
// makes at once. Takes, which may wait for long, have the others.
constexpr std::size_t kReserved = 5, kMostConnections = kReserved + 8;

kit::Pool::Options pool_options(const std::shared_ptr<const Dialer>& dialer,
                                const std::optional<Address>& address) {
  kit::Pool::Options options;
  options.name = address ? "redis at " + address->text() : dialer->where();
  options.most = kMostConnections;
  options.reserved = kReserved;
  options.open = [dialer, address](const kit::StopSignal& stop) {
    return dialer->open(address ? &*address : nullptr, Dialer::Purpose::kCommands, stop);
  };
  return options;
}

}  // namespace

Node::Node(std::shared_ptr<const Dialer> dialer, std::optional<Address> address)
    : dialer_(std::move(dialer)),
      address_(std::move(address)),
      pool_(pool_options(dialer_, address_)) {}

Node::~Node() = default;

std::shared_ptr<Link> Node::current() const {
  const std::lock_guard lock(guard_);
  return link_;
}

bool Node::is_down() const {
  const auto link = current();
  return !link || link->is_broken();
}

std::shared_ptr<Link> Node::link(LocalTime deadline) {
  std::unique_lock lock(guard_);
  std::shared_ptr<Link> lost;  // goes without the lock
  while (true) {
    if (link_ && !link_->is_broken()) return link_;
    lost = std::exchange(link_, nullptr);
    if (!opening_) break;
    const LocalTime now = BootClock::now();
    if (now >= deadline) {
      throw Error(Errc::kTimeout,
                  dialer_->where() + ": no connection was open before the deadline");
    }
    opened_.wait_for(lock, deadline - now);
  }
  opening_ = true;
  lock.unlock();
  lost.reset();
  std::shared_ptr<Link> made;
  std::exception_ptr trouble;
  try {
    made = std::make_shared<Link>(pool_.borrow(Lane::kKeep, deadline));
  } catch (...) {  // whatever it was, others wait for its end
    trouble = std::current_exception();
  }
  lock.lock();
  opening_ = false;
  link_ = made;
  opened_.notify_all();
  if (trouble) std::rethrow_exception(trouble);
  return made;
}

Replies Node::run(const Commands& commands, LocalTime deadline) {
  Replies replies;
  // Nothing has been sent on one that was lost while it rested.
  if (link(deadline)->run(commands, deadline, replies)) return replies;
  if (link(deadline)->run(commands, deadline, replies)) return replies;
  throw Error(Errc::kUnreachable, dialer_->where() + ": the connection was closed at once");
}

void Node::post(const Commands& commands) noexcept {
  if (const auto link = current()) link->post(commands);
}

kit::Pool::Borrowed Node::borrow(Lane lane, LocalTime deadline) {
  return pool_.borrow(lane, deadline, kit::Pool::Reserve::kNow);
}

void Node::leave(const Error& why) {
  if (const auto link = current()) link->give_up(why);
  pool_.drop_idle();
}

}  // namespace simba::redis
