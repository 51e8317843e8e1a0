#pragma once

#include <bson/bson.h>

#include <optional>
#include <string_view>

// What a change stream tells, as far as it is asked for. It only wakes: nothing of it is believed.
namespace simba::mongodb {

inline constexpr const char* kEndOfStream = "invalidate";  // an operation

// The collection was dropped or renamed.
bool ends_stream(const bson_t* change);
// The mutex that may have become free, as long as `change` lasts; empty: any may have. None: no
// mutex has that name.
std::optional<std::string_view> freed_by(const bson_t* change);

}  // namespace simba::mongodb
