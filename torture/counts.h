#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "testing/servers/redis.h"
#include "torture/target.h"

// What the stores themselves say that they keep, asked by their own tools. Each answers with
// nothing where the server is down.
namespace simba::torture {

std::vector<Count> count_sqlite(const std::filesystem::path& file);
std::vector<Count> count_redis(const servers::RedisServer& server);

}  // namespace simba::torture
