#include "stores/redis/administration.h"

#include "simba/redis.h"
#include "stores/redis/dialer.h"
#include "stores/redis/failure.h"

namespace simba::redis {

Preparation prepare(std::string_view url, Prepare how) {
  const Dialer dialer(redis_options(url));  // refuses what is wrong with it, and calls nobody
  const RedisOptions::Topology topology = dialer.options().topology;
  if (how == Prepare::kNow) return {"", "Redis needs nothing to be made: keys come with claims"};
  return {"# Nothing has to be made. A contender needs these rights and no more:\n# " +
              contender_acl(topology) + "\n# Who only looks (ls, show, watch):\n# " +
              observer_acl(topology) + '\n',
          "Redis needs nothing to be made"};
}

}  // namespace simba::redis
