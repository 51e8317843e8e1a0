#include "stores/redis/requests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "stores/redis/names.h"

namespace simba::redis {
namespace {

// Microseconds of the server's time. Measured as usec_per_call of EVALSHA (INFO commandstats, Redis
// 7.0, 2026-11): a take 8 to 10, a release that wakes nobody 3 to 6, a renewal alone 4.4 to 5,
// sixteen in a script 45 to 58. `script/bench --filter redis-renewal` shows the last one anew.
constexpr unsigned kTakeCost = 12, kScriptCost = 2, kRenewalCost = 4, kReleaseCost = 10;
// A script holds up everybody: 16 renewals take less than a tenth of a millisecond.
constexpr std::size_t kPerRequest = 16;
constexpr std::int64_t kShortestQueue = 60'000;
constexpr std::size_t kUsualRenewal = 256;  // bytes of its words

unsigned cost_of_guard(std::size_t count) {
  return kScriptCost + kRenewalCost * static_cast<unsigned>(count);
}

std::int64_t lease_of(const Claim& claim) { return (claim.ttl + claim.transition).count(); }

// "ttl transition ", as it stands in front of the details.
std::string shape_of(const Claim& claim) {
  std::array<char, 44> text{};
  char* end = text.data();
  for (const milliseconds span : {claim.ttl, claim.transition}) {
    end = std::to_chars(end, text.data() + text.size() - 1, span.count()).ptr;
    *end++ = ' ';
  }
  return {text.data(), end};
}

}  // namespace

Requests::Requests(const RedisOptions& options, std::string id)
    : queue_(queue_suffix(options.queue)),
      id_(std::move(id)),
      per_request_(options.topology == RedisOptions::Topology::kCluster ? 1 : kPerRequest),
      acknowledged_(options.replicas > 0) {}

Request Requests::take(const Claim& claim, const Subscriptions::Place& place) const {
  Request request;
  request.kind = Request::Kind::kTake;
  request.script = &acquire_script();
  request.slot = slot_of(claim.mutex);
  request.cost = kTakeCost;
  request.lease = lease_of(claim);
  request.acknowledged = acknowledged_;
  const bool queues = place.heard || place.queued;
  const std::string key = lease_key(claim.mutex);
  request.words.text(queues ? "5" : "4").text(key).text(key, kFence).text(key, kToken);
  request.words.text(key, kDetails);
  if (queues) request.words.text(key, queue_);
  request.words.text(claim.wire_id).number(request.lease).text(shape_of(claim));
  request.words.number(static_cast<std::int64_t>(claim.floor));
  if (queues) request.words.text(id_).text(place.queued ? "1" : "0");
  return request;
}

Request Requests::give_up(std::string_view mutex, std::string_view wire_id, std::string_view token,
                          std::string_view how) const {
  Request request;
  request.kind = Request::Kind::kWrite;
  request.script = &release_script();
  request.slot = slot_of(mutex);
  request.cost = kReleaseCost;
  const std::string key = lease_key(mutex);
  request.words.text("4").text(key).text(key, kToken).text(key, kDetails).text(key, queue_);
  request.words.text(wire_id);
  if (!token.empty()) request.words.text(token).text(how);
  return request;
}

// The wire id names the term: no token is compared.
Request Requests::release(std::string_view mutex, std::string_view wire_id) const {
  return give_up(mutex, wire_id, {}, {});
}

Request Requests::evict(std::string_view mutex, std::string_view wire_id, Token token,
                        Eviction how) const {
  return give_up(mutex, wire_id, std::to_string(token),
                 how == Eviction::kKeepLease ? "keep" : "free");
}

std::array<Request, 2> Requests::keep_place(std::string_view mutex,
                                            const Subscriptions::Place& place) const {
  std::array<Request, 2> requests;
  for (Request& each : requests) each.slot = slot_of(mutex);
  const std::string key = lease_key(mutex);
  const std::string fraction = std::to_string(1'000 + place.since % 1'000).substr(1);
  requests[0].words.text("ZADD").text(key, queue_).text("NX");
  requests[0].words.text(std::to_string(place.since / 1'000) + '.' + fraction).text(id_);
  requests[1].words.text("PEXPIRE").text(key, queue_);
  requests[1].words.number(std::max(3 * place.lease, kShortestQueue));
  return requests;
}

Request Requests::renew(std::span<const Claim> claims) const {
  Request request;
  request.kind = Request::Kind::kWrite;
  request.script = &guard_script();
  request.slot = slot_of(claims.front().mutex);
  request.cost = cost_of_guard(claims.size());
  request.acknowledged = acknowledged_;
  request.words.reserve(kUsualRenewal * claims.size());
  request.words.number(static_cast<std::int64_t>(3 * claims.size()));
  for (const Claim& claim : claims) {
    const std::string key = lease_key(claim.mutex);
    request.words.text(key).text(key, kToken).text(key, kDetails);
  }
  for (const Claim& claim : claims) {
    request.words.text(claim.wire_id)
        .number(static_cast<std::int64_t>(claim.token))
        .number(lease_of(claim))
        .text(shape_of(claim));
  }
  return request;
}

// A renewal in nobody's name: no token is empty.
Request Requests::observe(std::span<const std::string_view> mutexes) const {
  Request request;
  request.kind = Request::Kind::kRead;
  request.script = &guard_script();
  request.slot = slot_of(mutexes.front());
  request.cost = cost_of_guard(mutexes.size());
  request.words.number(static_cast<std::int64_t>(3 * mutexes.size()));
  for (const std::string_view mutex : mutexes) {
    const std::string key = lease_key(mutex);
    request.words.text(key).text(key, kToken).text(key, kDetails);
  }
  for (std::size_t i = 0; i < 4 * mutexes.size(); ++i) request.words.text({});
  return request;
}

}  // namespace simba::redis
