#include "stores/mongodb/answers.h"

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
  seen.owner.transition_at = at(*expires);
  const std::int64_t token = number_in(document, "token").value_or(0);
  if (token < 0) refuse("token is negative");
  const bool ours = text_in(document, "wireId") == owner;
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
