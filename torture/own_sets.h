#pragma once

#include "torture/target.h"

// Stores of several servers that we start on loopback. Of each the one that leads is killed, and
// comes back when another one does.
namespace simba::torture {

Target start_zookeeper_ensemble();
Target start_mongodb_set();
Target start_redis_sentinels();
Target start_galera();
Target start_mariadb_replica();
Target start_postgres_standby();
Target start_postgres_asynchronous();

}  // namespace simba::torture
