#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "simba/store.h"

namespace simba::kit {

// The largest token a column of 64 bits with a sign can hold.
inline constexpr auto kMaxToken = static_cast<Token>(std::numeric_limits<std::int64_t>::max());

// Whether a row can hold what a claim says, before a statement is sent: one bad claim in it would
// fail its neighbours. Throw Error (kMisconfigured) that names the value and the limit.
void check_claim(const StoreTraits& traits, const Claim& claim);
void check_term(const StoreTraits& traits, std::string_view mutex, std::string_view wire_id,
                Token token);
void check_name(const StoreTraits& traits, std::string_view mutex);

// The answer to a take, where one statement decided and the next one read the row. Who was refused
// was refused while somebody else's lease ran, though that be over when it is read: the time is
// then the last at which it ran. A lease of the claim's own is never made to look longer.
void set_time_of_refusal(Observation& seen, const Claim& take);

// The first name that a page can hold: the prefix itself, or what comes next after `after`. Names
// hold no control characters, so nothing lies in between.
std::string first_of_page(std::string_view prefix, std::string_view after);

}  // namespace simba::kit
