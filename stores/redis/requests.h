#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "stores/redis/courier.h"
#include "stores/redis/subscriptions.h"

namespace simba::redis {

// What goes to a server for a claim. Claims are checked already.
class Requests {
 public:
  // `id` is this process in queues. In a cluster each mutex has a request of its own.
  Requests(const RedisOptions& options, std::string id);

  Request take(const Claim& claim, const Subscriptions::Place& place) const;
  Request release(std::string_view mutex, std::string_view wire_id) const;
  Request evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how) const;
  // Keeps a place in the queue, which a JVM contender may have deleted, and which ends by itself.
  std::array<Request, 2> keep_place(std::string_view mutex,
                                    const Subscriptions::Place& place) const;

  // Many in one: `per_request()` of them at most.
  std::size_t per_request() const { return per_request_; }
  Request renew(std::span<const Claim> claims) const;
  Request observe(std::span<const std::string_view> mutexes) const;

 private:
  Request give_up(std::string_view mutex, std::string_view wire_id, std::string_view token,
                  std::string_view how) const;

  const std::string_view queue_;
  const std::string id_;
  const std::size_t per_request_;
  const bool acknowledged_;
};

// What came back. Throw Error for a reply that is an error, or makes no sense.
Observation read_take(const Claim& claim, const Reply& reply, const std::string& where);
// Whether it names the claim's wire id as the owner, in a new term or in one it had.
bool is_grant(const Claim& claim, const Reply& reply);
// One answer for each of them, in order: where one makes no sense, it is an error of its own.
void read_renewals(std::span<const Claim> claims, const Reply& reply, const std::string& where,
                   std::span<Answer> answers);
void read_observations(const Reply& reply, const std::string& where, std::span<Answer> answers);
// Whether something was given up.
bool read_release(const Reply& reply, const std::string& where);
// Of SCAN: adds the mutexes whose keys it names. Returns the cursor of the next; "0": that was all.
std::string read_scan(const Reply& reply, const std::string& where,
                      std::vector<std::string>& mutexes);

}  // namespace simba::redis
