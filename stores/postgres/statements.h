#pragma once

#include <vector>

#include "stores/postgres/connection.h"
#include "stores/postgres/endpoint.h"

namespace simba::postgres {

// The statements on the table, in this order.
enum Which : std::size_t {
  kTakeOne,
  kTakeMany,
  kRenewOne,
  kRenewMany,
  kReleaseOne,
  kReleaseMany,
  kEvict,
  kObserve,
  kList,
};

std::vector<Statement> make_statements(const Endpoint& endpoint);

}  // namespace simba::postgres
