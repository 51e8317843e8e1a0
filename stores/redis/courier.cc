#include "stores/redis/courier.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "stores/kit/shortened.h"
#include "stores/redis/directions.h"
#include "stores/redis/failure.h"

namespace simba::redis {

// Where a request is going, and how.
struct Courier::Errand {
  Request* request;
  std::shared_ptr<Node> node;
  bool asking = false;     // the slot is half there
  bool with_text = false;  // the server has forgotten the script
  bool in_doubt = false;   // its node may be silent

  // Nobody waits for a silent server, and renewals not for takes that wait for replicas.
  static bool goes_before(const Errand& a, const Errand& b) { return a.order() < b.order(); }
  std::tuple<bool, bool, const Node*> order() const {
    return {in_doubt, request->own_lane() == Lane::kAsk, node.get()};
  }
  std::size_t commands() const { return asking ? 2 : 1; }
  void add_to(Commands& commands, const ServerFacts& facts) const;
};

namespace {

constexpr int kMostHops = 5;
constexpr unsigned kMostCost = 500;  // microseconds
constexpr std::string_view kNames[2][2] = {{"EVALSHA", "EVAL"}, {"EVALSHA_RO", "EVAL_RO"}};

// From when on, by the server's clock in ms, no lease of this length from before its start can
// still run; 0: none can now. Where that clock was set back, its start may be ahead of it for ever:
// a connection as old as the lease proves the same.
std::int64_t not_before(const ServerFacts& facts, std::int64_t lease) {
  if (!facts.may_have_forgotten) return 0;
  if (BootClock::now() - facts.seen_up >= milliseconds(lease)) return 0;
  return facts.started + lease;
}

}  // namespace

bool Pipeline::takes(const Request& request) {
  if (first_ == nullptr) first_ = &request;
  const bool fits = first_ == &request || cost_ + request.cost <= kMostCost;
  if (!fits || request.own_lane() != first_->own_lane()) return false;
  cost_ += request.cost;
  return true;
}

void Courier::Errand::add_to(Commands& commands, const ServerFacts& facts) const {
  if (asking) commands.add({"ASKING"});
  const Request& its = *request;
  if (its.script == nullptr) {
    commands.add(its.words);
    return;
  }
  const bool reads = its.kind == Request::Kind::kRead && facts.can_read_only_scripts;
  const std::string_view name = kNames[reads ? 1 : 0][with_text ? 1 : 0];
  const std::string_view what = with_text ? its.script->text : std::string_view(its.script->hash);
  if (its.kind != Request::Kind::kTake) {
    commands.add({name, what}, its.words);
    return;
  }
  commands.add({name, what}, its.words, {std::to_string(not_before(facts, its.lease))});
}

Courier::Courier(std::shared_ptr<const Dialer> dialer)
    : dialer_(std::move(dialer)), servers_(dialer_) {}

void Courier::perform(std::span<Request> requests, LocalTime deadline) {
  Errands errands;
  errands.reserve(requests.size());
  for (Request& request : requests) {
    try {
      errands.push_back({&request, servers_.of_slot(request.slot, deadline)});
    } catch (const Error& error) {
      request.error = error;
    }
  }
  for (int hop = 0; hop < kMostHops && !errands.empty(); ++hop) {
    if (servers_.is_cluster() || dialer_->options().replicas > 0) {
      for (Errand& each : errands) each.in_doubt = each.node->is_down();
      std::stable_sort(errands.begin(), errands.end(), Errand::goes_before);
    }
    for (auto from = errands.begin(); from != errands.end();) {
      const auto to = std::find_if(from, errands.end(),
                                   [&](const Errand& each) { return each.node != from->node; });
      // A server that does not answer leaves the others their share of the time.
      const LocalTime now = BootClock::now();
      const bool last = to == errands.end();
      perform_on(*from->node, {from, to}, last ? deadline : now + (deadline - now) / 2);
      from = to;
    }
    std::erase_if(errands, [&](Errand& each) { return !goes_on(each); });
  }
  for (const Errand& lost : errands) {
    lost.request->error.emplace(Errc::kUnreachable, dialer_->where() +
                                                        ": the servers send us on and on (" +
                                                        kit::shortened(lost.request->reply.text) +
                                                        "); nothing was changed");
  }
}

void Courier::perform_on(Node& node, std::span<Errand> errands, LocalTime deadline) {
  while (!errands.empty()) {
    Pipeline pipeline;
    std::size_t count = 0;
    while (count < errands.size() && pipeline.takes(*errands[count].request)) ++count;
    const std::span<Errand> some = errands.first(count);
    try {
      some.front().request->acknowledged ? run_acknowledged(node, some, deadline)
                                         : run_some(node, some, deadline);
    } catch (const Error& error) {
      for (const Errand& each : errands) each.request->error = error;
      // Also one that is silent: its place may be another's by now.
      if (error.errc() == Errc::kUnreachable || node.is_down()) servers_.doubt(node);
      return;
    }
    errands = errands.subspan(count);
  }
}

void Courier::run_some(Node& node, std::span<Errand> errands, LocalTime deadline) {
  Replies replies;
  Commands commands;
  // Once more on a new connection, where the old one was lost while it rested: nothing was sent.
  for (bool again : {true, false}) {
    const std::shared_ptr<Link> link = node.link(deadline);
    commands.clear();
    for (const Errand& errand : errands) errand.add_to(commands, link->facts());
    if (link->run(commands, deadline, replies)) break;
    if (!again) {
      throw Error(Errc::kUnreachable, link->where() + ": the connection was closed at once");
    }
  }
  settle(node, errands, replies);
}

// WAIT speaks of the writes of its own connection, and holds up whatever comes behind it there.
void Courier::run_acknowledged(Node& node, std::span<Errand> errands, LocalTime deadline) {
  const std::size_t wanted = dialer_->options().replicas;
  const kit::Pool::Borrowed borrowed = node.borrow(*errands.front().request->own_lane(), deadline);
  auto& connection = static_cast<Connection&>(borrowed.get());
  Commands commands;
  for (const Errand& errand : errands) errand.add_to(commands, connection.facts);
  // What is refused has to be given back within the same deadline.
  const auto patience = std::max<std::int64_t>(
      std::chrono::duration_cast<milliseconds>(deadline - BootClock::now()).count() / 2, 1);
  commands.add(Words().text("WAIT").number(static_cast<std::int64_t>(wanted)).number(patience));
  Replies replies = connection.run(commands, deadline);
  const Reply waited = std::move(replies.back());
  replies.pop_back();
  settle(node, errands, replies);
  if (waited.is_error()) throw failure(waited, connection.where());
  if (waited.number >= static_cast<std::int64_t>(wanted)) return;
  const Error refused(Errc::kUnreachable,
                      connection.where() + ": " + std::to_string(waited.number) + " of " +
                          std::to_string(wanted) +
                          " replicas acknowledged in time; without them it does not count. Look at "
                          "the replicas, or lower replicas=");
  for (const Errand& each : errands) {
    if (!each.request->reply.is_error()) each.request->error = refused;
  }
}

void Courier::settle(Node& node, std::span<Errand> errands, Replies& replies) {
  std::size_t at = 0;
  for (const Errand& errand : errands) {
    at += errand.commands();
    errand.request->reply = std::move(replies.at(at - 1));
    // Whom ASKING is denied is sent back, and then here again.
    if (errand.asking && replies.at(at - 2).is_error()) {
      errand.request->reply = std::move(replies.at(at - 2));
    }
    const Reply& reply = errand.request->reply;
    if (!wants_another_server(reply)) continue;
    const bool alone = dialer_->options().topology == RedisOptions::Topology::kServer;
    const Error why = failure(reply, dialer_->where());
    node.leave(Error(Errc::kUnreachable, why.what()));
    servers_.doubt(node);
    // Where there are others, one of them is or will be the master.
    errand.request->error = Error(alone ? why.errc() : Errc::kUnreachable, why.what());
  }
}

bool Courier::goes_on(Errand& errand) {
  Request& request = *errand.request;
  const Reply& reply = request.reply;
  if (request.error || !reply.is_error()) return false;
  if (reply.is_error("NOSCRIPT") && !errand.with_text) {
    errand.with_text = true;
    return true;
  }
  errand.asking = reply.is_error("ASK");
  if (servers_.is_cluster() && (errand.asking || reply.is_error("MOVED"))) {
    if (const auto target = read_redirect(reply, errand.node->address())) {
      if (!errand.asking) servers_.moved(request.slot, *target);
      errand.node = servers_.at(*target);
      return true;
    }
  }
  return false;
}

void Courier::post(std::uint16_t slot, const Commands& commands) noexcept {
  if (const auto node = servers_.known(slot)) node->post(commands);
}

}  // namespace simba::redis
