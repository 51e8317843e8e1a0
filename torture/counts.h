#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "torture/target.h"

// What the stores themselves say that they keep, and what time it is, asked without the library.
// Where the server is down each answers without values.
namespace simba::torture {

std::vector<Count> count_sqlite(const std::filesystem::path& file);
std::vector<Count> count_redis(const std::filesystem::path& socket);
std::vector<Count> count_postgres(const std::string& url);
std::vector<Count> count_mariadb(const std::filesystem::path& socket);
std::vector<Count> count_zookeeper(std::uint16_t port);
// `ask` runs a command on a database, and throws std::runtime_error.
using AskMongodb = std::function<std::string(const std::string& command, const std::string& on)>;
std::vector<Count> count_mongodb(const AskMongodb& ask);

// What time it is by the wall clock that the store decides by, since 1970.
std::optional<nanoseconds> clock_of_redis(const std::filesystem::path& socket);
std::optional<nanoseconds> clock_of_postgres(const std::string& url);
std::optional<nanoseconds> clock_of_mariadb(const std::filesystem::path& socket);
std::optional<nanoseconds> clock_of_mongodb(const AskMongodb& ask);

}  // namespace simba::torture
