#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stores/redis/reply.h"

// What a server could have said, for tests.
namespace simba::redis {

inline Reply nil() { return {}; }
inline Reply number(std::int64_t value) { return {Reply::Kind::kNumber, value, {}, {}}; }
inline Reply text(std::string value) { return {Reply::Kind::kText, 0, std::move(value), {}}; }
inline Reply error(std::string value) { return {Reply::Kind::kError, 0, std::move(value), {}}; }
inline Reply array(std::vector<Reply> items) {
  return {Reply::Kind::kArray, 0, {}, std::move(items)};
}

}  // namespace simba::redis
