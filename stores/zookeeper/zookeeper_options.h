#pragma once

#include <string>

#include "simba/zookeeper.h"

namespace simba::zookeeper {

// Throws Error (kMisconfigured) for options that cannot work, whoever made them.
void check_options(const ZookeeperOptions& options);

// Whether the client library was built with OpenSSL.
bool has_tls();
// Throws where it was not; `option` is what asked for it.
void need_tls(const std::string& option);

}  // namespace simba::zookeeper
