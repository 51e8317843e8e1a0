// What the scripts, and SCAN, answer, read with suspicion.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "stores/redis/failure.h"
#include "stores/redis/names.h"
#include "stores/redis/requests.h"

namespace simba::redis {
namespace {

using Kind = Reply::Kind;

constexpr std::int64_t kLargestToken = (std::int64_t{1} << 53) - 1;
// A key without an end: somebody made it by hand.
constexpr milliseconds kForEver = std::chrono::hours{24} * 3'650;

[[noreturn]] void fail(const std::string& where) {
  throw Error(Errc::kCorrupt, where + ": the server's answer to a script makes no sense");
}

void check(const Reply& reply, const std::string& where) {
  if (reply.is_error()) throw failure(reply, where);
}

std::int64_t number(const Reply& reply, const std::string& where) {
  if (reply.kind != Kind::kNumber) fail(where);
  return reply.number;
}

const std::string& text(const Reply& reply, const std::string& where) {
  if (reply.kind != Kind::kText) fail(where);
  return reply.text;
}

// Digits: a number of a script would not survive as exactly everywhere.
std::int64_t digits(const Reply& reply, const std::string& where) {
  const std::string& all = text(reply, where);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc{} || end != all.data() + all.size()) fail(where);
  if (value < 0 || value > kLargestToken) fail(where);
  return value;
}

StoreTime from_micros(std::int64_t micros) { return StoreTime(milliseconds(micros / 1'000)); }

StoreTime time(const Reply& reply, const std::string& where) {
  return from_micros(digits(reply, where));
}

Token token(const Reply& reply, const std::string& where) {
  return static_cast<Token>(digits(reply, where));
}

struct Details {
  milliseconds ttl, transition;
  StoreTime start;
};

// "ttl transition start wire-id", the start in us: what another version, or another owner, has left
// is not believed.
std::optional<Details> details_of(std::string_view text, std::string_view owner) {
  std::int64_t numbers[3] = {};
  for (std::int64_t& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || length == text.size() || *end != ' ' || number < 0) return {};
    text.remove_prefix(length + 1);
  }
  if (text != owner || numbers[0] > kForEver.count() || numbers[1] > kForEver.count()) return {};
  return Details{milliseconds(numbers[0]), milliseconds(numbers[1]), from_micros(numbers[2])};
}

// {token, ms left, owner, details}, which begin at `at`.
Observation state_of(const std::vector<Reply>& items, std::size_t at, StoreTime now,
                     const std::string& where) {
  if (items.size() != at + 4) fail(where);
  Observation seen;
  seen.now = now;
  const std::int64_t left = number(items[at + 1], where);
  if (left == -2) {  // no such key: free
    seen.owner = MutexOwner::none();
    return seen;
  }
  seen.owner.token = token(items[at], where);
  seen.owner.id = text(items[at + 2], where);
  if (left < -2) fail(where);
  const bool is_endless = left == -1 || left > kForEver.count();
  seen.owner.transition_at = now + (is_endless ? kForEver : milliseconds(left));
  const auto details = details_of(text(items[at + 3], where), seen.owner.id);
  if (seen.owner.id.empty() || !details) return seen;
  seen.owner.acquired_at = details->start;
  seen.owner.ttl_at = seen.owner.transition_at - details->transition;
  return seen;
}

Observation granted(const Claim& claim, Token token, StoreTime now,
                    std::optional<StoreTime> start) {
  Observation seen;
  seen.now = now;
  seen.owner.id = claim.wire_id;
  seen.owner.token = token;
  seen.owner.acquired_at = start;
  seen.owner.ttl_at = now + claim.ttl;
  seen.owner.transition_at = now + claim.ttl + claim.transition;
  return seen;
}

// No longer than a lease from now, also where the server's clock was set back by hours: by then the
// connection is that old.
[[noreturn]] void too_early(const Claim& claim, std::int64_t left, const std::string& where) {
  const std::int64_t most = (claim.ttl + claim.transition).count();
  const std::string seconds = std::to_string((std::min(left, most) + 999) / 1'000);
  throw Error(
      Errc::kUnreachable,
      where + ": by its clock the server has just started, and may have forgotten a lease of '" +
          std::string(claim.mutex) +
          "' that somebody still holds: it keeps nothing, or snapshots alone. It is granted in " +
          seconds +
          " s, once such leases have ended; restart-guard=off turns this off, persistence "
          "(appendonly yes) makes it unnecessary");
}

// What stands under the names of one mutex is no trouble of its neighbours.
template <class Read>
void answer_alone(Answer& answer, Read read) {
  try {
    answer = read();
  } catch (const Error& error) {
    answer = error;
  }
}

}  // namespace

Observation read_take(const Claim& claim, const Reply& reply, const std::string& where) {
  check(reply, where);
  if (reply.kind == Kind::kText) {
    const Token its = token(reply, where);
    if (its == 0) fail(where);
    return granted(claim, its, time(reply, where), time(reply, where));
  }
  const auto& items = reply.items;
  if (reply.kind != Kind::kArray || items.size() < 2) fail(where);
  const StoreTime now = time(items[0], where);
  if (items.size() == 3) {
    const std::int64_t left = number(items[2], where);
    if (left < 0 || left > kForEver.count()) fail(where);
    too_early(claim, left, where);
  }
  if (items.size() == 2) {
    const Token its = token(items[1], where);
    if (its == 0) fail(where);
    return granted(claim, its, now, now);
  }
  return state_of(items, 1, now, where);
}

bool is_grant(const Claim& claim, const Reply& reply) {
  const auto& items = reply.items;
  if (reply.kind == Kind::kText || items.size() == 2) return true;
  return items.size() == 5 && items[3].text == claim.wire_id;
}

void read_renewals(std::span<const Claim> claims, const Reply& reply, const std::string& where,
                   std::span<Answer> answers) {
  check(reply, where);
  if (reply.kind != Kind::kArray || reply.items.size() != claims.size() + 1) fail(where);
  const StoreTime now = time(reply.items[0], where);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Reply& each = reply.items[i + 1];
    answer_alone(answers[i], [&] {
      if (each.kind != Kind::kText) return state_of(each.items, 0, now, where);
      const auto details = details_of(each.text, claims[i].wire_id);
      if (!details) fail(where);  // the script names whom it renewed
      return granted(claims[i], claims[i].token, now, details->start);
    });
  }
}

void read_observations(const Reply& reply, const std::string& where, std::span<Answer> answers) {
  check(reply, where);
  if (reply.kind != Kind::kArray || reply.items.size() != answers.size() + 1) fail(where);
  const StoreTime now = time(reply.items[0], where);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answer_alone(answers[i], [&] { return state_of(reply.items[i + 1].items, 0, now, where); });
  }
}

bool read_release(const Reply& reply, const std::string& where) {
  check(reply, where);
  return number(reply, where) == 1;
}

std::string read_scan(const Reply& reply, const std::string& where,
                      std::vector<std::string>& mutexes) {
  check(reply, where);
  const auto& items = reply.items;
  const bool fits = items.size() == 2 && items[1].kind == Kind::kArray && !items[0].text.empty() &&
                    items[0].text.find_first_not_of("0123456789") == std::string::npos;
  if (!fits) throw Error(Errc::kCorrupt, where + ": the server's answer to SCAN makes no sense");
  for (const Reply& key : items[1].items) {
    if (const auto mutex = mutex_of(key.text); !mutex.empty()) mutexes.emplace_back(mutex);
  }
  return items[0].text;
}

}  // namespace simba::redis
