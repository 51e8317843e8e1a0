#pragma once

#include <memory>

#include "stores/kit/listener.h"
#include "stores/mongodb/endpoint.h"

namespace simba::mongodb {

// Hears of releases elsewhere by a change stream. Stores of one process on the same collection of
// the same servers share it, but where the user brings the pool. A standalone server has no change
// streams: waiters poll, which is said once. `log` is where the endpoint says its lines, and from
// then on those of the shared one.
std::shared_ptr<kit::Listener> changes_of(const std::shared_ptr<Endpoint>& endpoint,
                                          const std::shared_ptr<kit::SharedLog>& log);

}  // namespace simba::mongodb
