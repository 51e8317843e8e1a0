#pragma once

#include <memory>

#include "stores/kit/listener.h"
#include "stores/postgres/endpoint.h"

namespace simba::postgres {

// Hears the NOTIFY of a release in another process. Stores of one process on the same table of the
// same server share it, but where the user brings the connections. `log` is where the endpoint says
// its lines, and from then on those of the shared one.
std::shared_ptr<kit::Listener> listener_of(const std::shared_ptr<Endpoint>& endpoint,
                                           const std::shared_ptr<kit::SharedLog>& log);

}  // namespace simba::postgres
