#pragma once

#include "simba/zookeeper.h"

namespace simba::zookeeper {

// Throws Error (kMisconfigured) for options that cannot work, whoever made them.
void check_options(const ZookeeperOptions& options);

}  // namespace simba::zookeeper
