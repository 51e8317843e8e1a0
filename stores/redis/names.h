#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simba/redis.h"

namespace simba::redis {

// What belongs to one mutex in a server, named as JVM Simba does. The braces make all of it live in
// one slot of a cluster.
//
//   simba:{MUTEX}            the owner's wire id, for as long as the lease runs; also the channel
//   simba:{MUTEX}:fence      the last token, for ever
//   simba:{MUTEX}:token      the token of the term
//   simba:{MUTEX}:lease      ours: "ttl transition start wire-id" of the term
//   simba:{MUTEX}:contender  who waits; `:waiters` where the queue is not shared with JVM Simba
//   simba:{MUTEX}:ID         the channel of one who waits
inline constexpr std::string_view kPrefix = "simba:{";
inline constexpr std::string_view kFence = ":fence", kToken = ":token", kDetails = ":lease";

inline std::string lease_key(std::string_view mutex) {
  std::string key;
  key.reserve(kPrefix.size() + mutex.size() + 1);
  key.append(kPrefix).append(mutex).append(1, '}');
  return key;
}

inline std::string_view queue_suffix(RedisOptions::Queue queue) {
  return queue == RedisOptions::Queue::kShared ? ":contender" : ":waiters";
}

// The mutex of such a key; empty: another key.
std::string_view mutex_of(std::string_view key);

// Of a cluster: by the text in the first braces.
inline constexpr std::uint16_t kSlots = 16'384;
std::uint16_t slot_of(std::string_view mutex);

// A pattern of SCAN that matches the keys of mutexes whose names begin so.
std::string scan_pattern(std::string_view prefix);

// Who can not be named: why, for an error; empty: it can.
std::string why_no_name(std::string_view mutex);
std::string why_no_id(std::string_view id);

// Messages on channels: "released@@ID", "acquired@@ID".
enum class News { kReleased, kAcquired, kOther };
struct Message {
  News news = News::kOther;
  std::string_view id;
};
Message parse_message(std::string_view text);

}  // namespace simba::redis
