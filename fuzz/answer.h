#pragma once

#include <string>

#include "fuzz/target.h"
#include "simba/store.h"
#include "stores/kit/claims.h"

namespace simba::fuzz {

inline constexpr std::string_view kMutex = "job", kWireId = "me~0123456789abc";

inline Claim claim_of(Input& input) {
  Claim claim;
  claim.mutex = kMutex;
  claim.wire_id = kWireId;
  if (input.flip()) claim.token = input.in_range<Token>(1, 1'000);
  claim.ttl = milliseconds{10'000};
  claim.transition = milliseconds{6'000};
  return claim;
}

inline StoreTime time(Input& input) {
  return StoreTime{milliseconds{input.number<std::int64_t>()}};
}

inline std::string id(Input& input) { return input.flip() ? std::string(kWireId) : input.text(40); }

inline Observation observation(Input& input) {
  Observation seen;
  seen.owner.id = id(input);
  if (input.flip()) seen.owner.acquired_at = time(input);
  if (input.flip()) seen.owner.ttl_at = time(input);
  seen.owner.transition_at = time(input);
  seen.owner.token = input.number<Token>();
  seen.now = time(input);
  return seen;
}

// What every answer must be, however wrong the server's bytes were.
inline void check(const Answer& answer) {
  const auto* seen = std::get_if<Observation>(&answer);
  if (seen != nullptr) require(seen->owner.token <= kit::kMaxToken, "a token fits into 63 bits");
}

}  // namespace simba::fuzz
