#include "stores/redis/redis_store.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "stores/kit/claims.h"
#include "stores/kit/forked.h"
#include "stores/redis/failure.h"
#include "stores/redis/names.h"

namespace simba::redis {
namespace {

constexpr std::size_t kLongestName = 255;
constexpr std::size_t kMostListed = 1'000'000;
// Scripts count in doubles.
constexpr Token kLargestToken = (Token{1} << 53) - 2;

const StoreTraits& store_traits() {
  static const StoreTraits traits{"redis", kLongestName, kLongestName, false, true};
  return traits;
}

[[noreturn]] void refuse(std::string_view what, std::string_view value, const std::string& why) {
  throw Error(Errc::kMisconfigured, "redis: " + std::string(what) + " '" + std::string(value) +
                                        "' cannot be used: " + why);
}

void check_key_name(std::string_view mutex) {
  if (const std::string why = why_no_name(mutex); !why.empty()) refuse("the mutex", mutex, why);
}

void check_token(const char* what, Token token) {
  if (token <= kLargestToken) return;
  refuse(what, std::to_string(token), "it is beyond 2^53, the range of this store");
}

// What this store says beyond what all do.
void check_keys(std::string_view mutex, std::string_view wire_id, Token token) {
  check_key_name(mutex);
  check_token("the token", token);
  if (const std::string why = why_no_id(wire_id); !why.empty()) refuse("the id", wire_id, why);
}

void check_term(std::string_view mutex, std::string_view wire_id, Token token) {
  kit::check_term(store_traits(), mutex, wire_id, token);
  check_keys(mutex, wire_id, token);
}

void check_claim(const Claim& claim) {
  kit::check_claim(store_traits(), claim);
  check_keys(claim.mutex, claim.wire_id, claim.token);
  check_token("the floor", claim.floor);
}

void check_name(std::string_view mutex) {
  kit::check_name(store_traits(), mutex);
  check_key_name(mutex);
}

bool can_be_named(std::string_view mutex) {
  try {
    check_name(mutex);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// False: the answer is what was thrown.
template <class Check>
bool passes(Check check, Answer& answer) {
  try {
    check();
    return true;
  } catch (const Error& error) {
    answer = error;
    return false;
  }
}

// Trouble of all of them is thrown; else each has its own.
void throw_common(const std::vector<Request>& requests) {
  const bool all = std::all_of(requests.begin(), requests.end(),
                               [](const Request& each) { return each.error.has_value(); });
  if (all && !requests.empty()) throw Error(*requests.front().error);
}

}  // namespace

RedisStore::RedisStore(std::shared_ptr<Session> session, const LogSink& log)
    : session_(std::move(session)), lines_(kit::SharedLog::add(session_->log, log)) {}

RedisStore::~RedisStore() {
  if (!process_.is_still()) kit::leave_alone(std::move(session_));  // the parent's
}

const StoreTraits& RedisStore::traits() const { return store_traits(); }

void RedisStore::check_fork() const {
  if (process_.is_still()) return;
  throw Error(Errc::kMisuse,
              "redis: forked: this store was opened before the fork and is dead in the child; "
              "exec a program, or open the store after the fork");
}

void RedisStore::perform(std::vector<Request>& requests, LocalTime deadline) const {
  session_->courier->perform(requests, deadline);
  throw_common(requests);
}

Answers RedisStore::contend(std::span<const Claim> claims, LocalTime deadline) {
  check_fork();
  Subscriptions& subscriptions = session_->listener->subscriptions();
  const Requests& make = session_->requests;
  Answers answers(claims.size(), Blocked{});
  std::vector<Request> requests;
  Parts parts;
  std::vector<Subscriptions::Place> places;
  requests.reserve(claims.size());
  parts.reserve(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!passes([&] { check_claim(claims[i]); }, answers[i])) continue;
    if (claims[i].renews()) {
      // Neighbours go together, as many as a script may take at once.
      std::size_t count = 1;
      while (count < make.per_request() && i + count < claims.size() &&
             claims[i + count].renews() &&
             passes([&] { check_claim(claims[i + count]); }, answers[i + count])) {
        ++count;
      }
      requests.push_back(make.renew(claims.subspan(i, count)));
      parts.push_back({i, count});
      i += count - 1;
    } else {
      places.push_back(subscriptions.place(claims[i].mutex));
      requests.push_back(make.take(claims[i], places.back()));
      parts.push_back({i, 1});
    }
  }
  const LocalTime began = BootClock::now();
  session_->courier->perform(requests, deadline);
  auto place = places.begin();
  for (std::size_t k = 0; k < requests.size(); ++k) {
    const auto [from, count] = parts[k];
    const std::span<const Claim> its = claims.subspan(from, count);
    const std::span<Answer> their = std::span(answers).subspan(from, count);
    const bool takes = !its[0].renews();
    try {
      if (requests[k].error) throw Error(*requests[k].error);
      if (takes) {
        their[0] = read_take(its[0], requests[k].reply, where());
      } else {
        read_renewals(its, requests[k].reply, where(), their);
      }
    } catch (const Error& error) {
      std::fill(their.begin(), their.end(), error);
    }
    if (takes) note_place(its[0], their[0], *place++);
  }
  give_back(claims, requests, parts, began, deadline, answers);
  throw_common(requests);
  return answers;
}

// Where this process stands in the queue after a take.
void RedisStore::note_place(const Claim& claim, const Answer& answer,
                            const Subscriptions::Place& place) const {
  const auto* seen = std::get_if<Observation>(&answer);
  if (seen == nullptr || !(place.heard || place.queued)) return;
  Subscriptions& subscriptions = session_->listener->subscriptions();
  if (seen->owner.is_owner(claim.wire_id)) {
    subscriptions.left_queue(claim.mutex);
  } else {
    subscriptions.queued(claim.mutex, seen->now.time_since_epoch().count(),
                         (claim.ttl + claim.transition).count());
  }
}

// What was granted, or granted again, and does not count, because too few replicas have it. A
// release that was not answered may still come, and would end a later term of the same id: then the
// answer is a grant whose ttl is over, after which nobody claims under this id again. Such an
// answer is no error, so that the log has it.
void RedisStore::give_back(std::span<const Claim> claims, std::vector<Request>& requests,
                           const Parts& parts, LocalTime began, LocalTime deadline,
                           Answers& answers) const {
  std::vector<Request> back;
  std::vector<std::size_t> whose;
  for (std::size_t k = 0; k < requests.size(); ++k) {
    const Claim& claim = claims[parts[k].from];
    if (!claim.renews() && requests[k].error && is_grant(claim, requests[k].reply)) {
      back.push_back(session_->requests.release(claim.mutex, claim.wire_id));
      whose.push_back(k);
    }
  }
  if (back.empty()) return;
  session_->courier->perform(back, deadline);
  const auto took = std::chrono::floor<milliseconds>(BootClock::now() - began);
  for (std::size_t i = 0; i < back.size(); ++i) {
    Request& refused = requests[whose[i]];
    const std::size_t at = parts[whose[i]].from;
    if (!back[i].error) {
      const std::string why = refused.error->what();
      refused.error.emplace(refused.error->errc(), why + "; it was given back");
      answers[at] = *refused.error;
      said_unheard_ = false;
      continue;
    }
    if (!said_unheard_.exchange(true)) {
      session_->courier->dialer().log(
          LogLevel::kWarning,
          std::string(refused.error->what()) + "; whether it was given back is unknown (" +
              back[i].error->what() + "): each such claim goes on under another id");
    }
    const auto spend = [&] {
      Observation seen = read_take(claims[at], refused.reply, where());
      seen.owner.ttl_at = seen.now + took;  // over, counted from before the call
      answers[at] = seen;
      refused.error.reset();
    };
    passes(spend, answers[at]);
  }
}

Answers RedisStore::release(std::span<const Claim> claims, LocalTime deadline) {
  check_fork();
  Answers answers(claims.size(), Blocked{});
  std::vector<Request> requests;
  std::vector<std::size_t> places;
  requests.reserve(claims.size());
  places.reserve(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    const auto check = [&] { check_term(claim.mutex, claim.wire_id, claim.token); };
    if (!passes(check, answers[i])) continue;
    requests.push_back(session_->requests.release(claim.mutex, claim.wire_id));
    places.push_back(i);
  }
  perform(requests, deadline);
  for (std::size_t k = 0; k < requests.size(); ++k) {
    Answer& answer = answers[places[k]];
    passes(
        [&] {
          if (requests[k].error) throw Error(*requests[k].error);
          read_release(requests[k].reply, where());
          answer = Observation{};
        },
        answer);
  }
  return answers;
}

Answers RedisStore::observe(std::span<const std::string_view> mutexes, LocalTime deadline) {
  check_fork();
  const Requests& make = session_->requests;
  Answers answers(mutexes.size(), Blocked{});
  std::vector<Request> requests;
  Parts parts;
  for (std::size_t i = 0; i < mutexes.size(); ++i) {
    if (!passes([&] { check_name(mutexes[i]); }, answers[i])) continue;
    std::size_t count = 1;
    while (count < make.per_request() && i + count < mutexes.size() &&
           passes([&] { check_name(mutexes[i + count]); }, answers[i + count])) {
      ++count;
    }
    requests.push_back(make.observe(mutexes.subspan(i, count)));
    parts.push_back({i, count});
    i += count - 1;
  }
  // A waiter's poll keeps its place in the queue. Who only looks has none.
  for (const std::string_view mutex : mutexes) {
    const Subscriptions::Place place = session_->listener->subscriptions().place(mutex);
    if (!place.queued) continue;
    for (Request& each : make.keep_place(mutex, place)) requests.push_back(std::move(each));
  }
  perform(requests, deadline);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::span<Answer> their = std::span(answers).subspan(parts[k].from, parts[k].count);
    try {
      if (requests[k].error) throw Error(*requests[k].error);
      read_observations(requests[k].reply, where(), their);
    } catch (const Error& error) {
      std::fill(their.begin(), their.end(), error);
    }
  }
  return answers;
}

Observation RedisStore::evict(std::string_view mutex, std::string_view wire_id, Token token,
                              Eviction how, LocalTime deadline) {
  check_fork();
  check_term(mutex, wire_id, token);
  std::vector<Request> requests;
  requests.push_back(session_->requests.evict(mutex, wire_id, token, how));
  perform(requests, deadline);
  read_release(requests[0].reply, where());
  const Answers after = observe({&mutex, 1}, deadline);
  if (const auto* error = std::get_if<Error>(&after.at(0))) throw Error(*error);
  return std::get<Observation>(after[0]);
}

std::unique_ptr<Watch> RedisStore::watch(std::string_view mutex, std::string_view,
                                         std::function<void()> wake) {
  check_fork();
  return session_->listener->add(mutex, std::move(wake));
}

// Every key of every master is passed by once, because a server knows no order: for operators, not
// for programs. Of the names behind `after`, the first ones are kept.
std::set<std::string> RedisStore::scan(std::string_view prefix, std::string_view after,
                                       std::size_t limit, LocalTime deadline) const {
  const std::string pattern = scan_pattern(prefix);
  std::set<std::string> names;
  for (const auto& node : session_->courier->servers().masters(deadline)) {
    std::string cursor = "0";
    do {
      const Replies replies = node->run(
          Commands().add({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", "string"}),
          deadline);
      std::vector<std::string> some;
      cursor = read_scan(replies[0], where(), some);
      for (std::string& name : some) {
        // Keys of others may look like ours, and then one of them would be in the way of all.
        if (name > after && can_be_named(name)) names.insert(std::move(name));
        if (names.size() > limit) names.erase(std::prev(names.end()));
      }
    } while (cursor != "0");
  }
  return names;
}

std::vector<Listed> RedisStore::list(std::string_view prefix, std::string_view after,
                                     std::size_t limit, LocalTime deadline) {
  check_fork();
  if (!prefix.empty()) check_name(prefix);
  std::vector<Listed> out;
  std::string last(after);
  while (out.size() < limit) {
    const std::size_t most = std::min(limit - out.size(), kMostListed);
    const std::set<std::string> names = scan(prefix, last, most, deadline);
    const std::vector<std::string_view> views(names.begin(), names.end());
    const Answers answers = views.empty() ? Answers{} : observe(views, deadline);
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (const auto* error = std::get_if<Error>(&answers[i])) throw Error(*error);
      const auto& seen = std::get<Observation>(answers[i]);
      if (!seen.is_free()) out.push_back({std::string(views[i]), seen});
    }
    if (views.size() < most) break;
    last = views.back();  // some had ended since: the page is filled up
  }
  return out;
}

void RedisStore::check_mutex(std::string_view mutex) const {
  Store::check_mutex(mutex);
  check_key_name(mutex);
}

void RedisStore::check_label(std::string_view label) const {
  Store::check_label(label);
  if (const std::string why = why_no_id(label); !why.empty()) refuse("the id", label, why);
}

}  // namespace simba::redis

namespace simba::inline v0 {

std::shared_ptr<Store> open_redis(const RedisOptions& options) {
  return std::make_shared<redis::RedisStore>(redis::Session::of(options), options.log);
}

}  // namespace simba::inline v0
