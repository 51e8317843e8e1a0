#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "torture/target.h"

// What the stores themselves say that they keep, asked without the library. Each answers with
// nothing, or with less, where the server is down.
namespace simba::torture {

std::vector<Count> count_sqlite(const std::filesystem::path& file);
std::vector<Count> count_redis(const std::filesystem::path& socket);
std::vector<Count> count_postgres(const std::string& url);
std::vector<Count> count_mariadb(const std::filesystem::path& socket);
std::vector<Count> count_zookeeper(std::uint16_t port);
// `ask` runs a command on a database, and throws std::runtime_error.
using AskMongodb = std::function<std::string(const std::string& command, const std::string& on)>;
std::vector<Count> count_mongodb(const AskMongodb& ask);

}  // namespace simba::torture
