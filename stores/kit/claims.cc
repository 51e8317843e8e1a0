#include "stores/kit/claims.h"

#include <algorithm>
#include <chrono>

namespace simba::kit {
namespace {

// Far beyond any sense, far from the end of the numbers.
constexpr milliseconds kLongestLease = std::chrono::hours{24} * 36'500;

[[noreturn]] void refuse(const StoreTraits& traits, const std::string& why) {
  throw Error(Errc::kMisconfigured, traits.name + ": " + why);
}

// The length of the character of several bytes that begins here, by its first; 0: none does.
std::size_t utf8_length(unsigned char first) {
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {  // most are
      ++i;
      continue;
    }
    const std::size_t length = utf8_length(first);
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    const auto second = static_cast<unsigned char>(text[i + 1]);
    const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool surrogate = first == 0xed && second >= 0xa0;
    const bool too_large = first == 0xf4 && second >= 0x90;
    if (too_long || surrogate || too_large) return false;
    i += length;
  }
  return true;
}

void check_text(const StoreTraits& traits, const char* what, std::string_view text,
                std::size_t limit) {
  if (text.empty()) refuse(traits, std::string(what) + " is empty");
  if (text.size() > limit) {
    refuse(traits, std::string(what) + " has " + std::to_string(text.size()) +
                       " bytes; this store holds at most " + std::to_string(limit));
  }
  if (text.find('\0') != text.npos || !is_utf8(text)) {
    refuse(traits, std::string(what) + " is not valid UTF-8, or holds a zero byte");
  }
}

void check_token(const StoreTraits& traits, const char* what, Token token) {
  if (token < kMaxToken) return;
  refuse(traits, std::string(what) + ' ' + std::to_string(token) +
                     " is beyond the range of this store (" + std::to_string(kMaxToken) + ')');
}

}  // namespace

void check_name(const StoreTraits& traits, std::string_view mutex) {
  check_text(traits, "the mutex name", mutex, traits.max_mutex_length);
}

void check_term(const StoreTraits& traits, std::string_view mutex, std::string_view wire_id,
                Token token) {
  check_name(traits, mutex);
  check_text(traits, "the wire id", wire_id, traits.max_wire_id_length);
  check_token(traits, "the token", token);
}

void check_claim(const StoreTraits& traits, const Claim& claim) {
  check_term(traits, claim.mutex, claim.wire_id, claim.token);
  check_token(traits, "the floor", claim.floor);
  const bool sane = claim.ttl > milliseconds::zero() && claim.transition >= milliseconds::zero() &&
                    claim.ttl <= kLongestLease && claim.transition <= kLongestLease;
  if (sane) return;
  refuse(traits, "a lease of ttl " + std::to_string(claim.ttl.count()) + " ms and transition " +
                     std::to_string(claim.transition.count()) + " ms makes no sense");
}

void set_time_of_refusal(Observation& seen, const Claim& take) {
  if (seen.owner.id.empty() || seen.owner.is_owner(take.wire_id)) return;
  seen.now = std::min(seen.now, seen.owner.transition_at);
}

std::string first_of_page(std::string_view prefix, std::string_view after) {
  if (after < prefix || after.empty()) return std::string(prefix);
  return std::string(after) + '\x01';
}

}  // namespace simba::kit
