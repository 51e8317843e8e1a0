#include "stores/mongodb/answers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "stores/kit/claims.h"
#include "stores/mongodb/document.h"

namespace simba::mongodb {
namespace {

StoreTime at(std::int64_t ms) { return StoreTime{milliseconds{ms}}; }

std::optional<StoreTime> time_in(const bson_t* document, const char* name) {
  const auto ms = number_in(document, name);
  return ms ? std::optional(at(*ms)) : std::nullopt;
}

// When a lease of ours ends, as statements.h says.
std::int64_t end_of_ours(const bson_t* document, std::int64_t expires) {
  const auto renewed = number_in(document, "renewedAt"), lease = number_in(document, "ttlMs");
  std::int64_t end = 0;
  if (!renewed || !lease || __builtin_add_overflow(*renewed, *lease, &end)) return expires;
  return std::min(expires, end);
}

}  // namespace

void refuse(const char* what) {
  throw Error(Errc::kCorrupt, std::string("mongodb: ") + what +
                                  ": not a document of ours nor of the Java reference");
}

// The four fields decide; ours are believed only while they speak of the same owner.
Observation read_document(const bson_t* document, const char* clock) {
  const auto owner = text_in(document, "ownerId");
  const auto expires = number_in(document, "expiresAt"), now = number_in(document, clock);
  if (!owner) refuse("ownerId is no text");
  if (!expires) refuse("expiresAt is no number");
  if (!now) refuse("an answer without a time");
  Observation seen;
  seen.now = at(*now);
  seen.owner.id = *owner;
  const std::int64_t token = number_in(document, "token").value_or(0);
  if (token < 0) refuse("token is negative");
  const bool ours = text_in(document, "wireId") == owner;
  seen.owner.transition_at = at(ours ? end_of_ours(document, *expires) : *expires);
  if (ours || owner->empty()) seen.owner.token = static_cast<Token>(token);
  if (ours && !owner->empty()) {
    seen.owner.ttl_at = time_in(document, "ttlAt");
    seen.owner.acquired_at = time_in(document, "acquiredAt");
  }
  return seen;
}

Answer read_answer(const bson_t* document) try {
  return read_document(document, "now");
} catch (const Error& error) {
  return error;
}

// A document with the last token there is can never be taken again: that is no answer to a take.
Answer answer_to_take(Answer answer, const Claim& claim) {
  auto* seen = std::get_if<Observation>(&answer);
  if (seen) kit::set_time_of_refusal(*seen, claim);
  if (!seen || seen->owner.token < kit::kMaxToken) return answer;
  return Error(Errc::kCorrupt,
               "mongodb: the document of this mutex holds a token at the end of its range");
}

}  // namespace simba::mongodb
