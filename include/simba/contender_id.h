#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "simba/export.h"

namespace simba::inline v0 {

// Makes the label of a contender: what people read in tables, logs and `simba ls`.
//
// A label decides nothing. What stands in the store is a *wire id*: the label, `~` and 13
// characters from 64 random bits, drawn anew for each attempt and never used twice. So two
// contenders with the same label, by mistake or after a restart, do not mistake each other's terms
// for their own.
//
// Threads: generate() is called from any thread.
class SIMBA_EXPORT ContenderIdGenerator {
 public:
  virtual ~ContenderIdGenerator() = default;
  virtual std::string generate() = 0;

  // {counter}:{pid}@{host}, at most 18 characters, the host cut to fit. The default.
  static ContenderIdGenerator& host();
  // 32 hex digits. Says nothing about the machine; its wire id is a new UUID for each attempt.
  static ContenderIdGenerator& uuid();
  static std::unique_ptr<ContenderIdGenerator> custom(std::function<std::string()> generate);
};

// Where the store limits ids to 32 characters, a label may have this many.
inline constexpr std::size_t kMaxPortableLabel = 18;

// `label~` and 13 characters [0-9a-v] of `random`; for a label that is a UUID, the UUID made of
// both numbers.
SIMBA_EXPORT std::string make_wire_id(std::string_view label, std::uint64_t random,
                                      std::uint64_t more_random);
// Such a label needs the second number, and no room for a suffix.
SIMBA_EXPORT bool is_uuid_label(std::string_view label);
// The label inside a wire id: for people, never an argument of a decision.
SIMBA_EXPORT std::string_view label_of(std::string_view wire_id);

}  // namespace simba::inline v0
