#pragma once

#include <mongoc/mongoc.h>

#include <memory>

#include "simba/time.h"
#include "stores/kit/worker.h"

namespace simba::mongodb {

// How long the call that a client makes just now may take, and who may end it before.
//
// Threads: that of the call.
struct Limit {
  LocalTime deadline = LocalTime::max();
  const kit::StopSignal* stop = nullptr;
};

// Gives a client sockets of ours: every wait in them ends at the limit's deadline. The driver knows
// one timeout for all calls of a client and none for one of them.
//
// The limit outlives the client. Resolving names has no deadline.
void use_limited_sockets(mongoc_client_t* client, Limit& limit);

}  // namespace simba::mongodb
