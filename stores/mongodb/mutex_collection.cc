#include "stores/mongodb/mutex_collection.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "stores/kit/claims.h"
#include "stores/mongodb/answers.h"
#include "stores/mongodb/statements.h"

namespace simba::mongodb {
namespace {

// The first error that is not a duplicate key: those come of a race that somebody has won.
void check_write_errors(const bson_t* reply, const std::string& where) {
  each_document(reply, "writeErrors", [&](const bson_t* error) {
    const auto code = number_in(error, "code").value_or(0);
    if (code == ServerCode::kDuplicateKey) return;
    throw server_failure(static_cast<int>(code), std::string(text_in(error, "errmsg").value_or("")),
                         where);
  });
}

// As a renewal that matched answers: the lease that was asked for, from now.
Observation renewed_term(const Claim& claim, StoreTime now) {
  return {{std::string(claim.wire_id), std::nullopt, now + claim.ttl,
           now + claim.ttl + claim.transition, claim.token},
          now};
}

// The cursor with what the answer had no room for; 0: it had.
std::int64_t rest_of(const bson_t* reply) {
  bson_iter_t start, id;
  const bool is_there =
      bson_iter_init(&start, reply) && bson_iter_find_descendant(&start, "cursor.id", &id);
  return is_there ? bson_iter_as_int64(&id) : 0;
}

std::vector<std::string_view> names_of(std::span<const Claim> claims) {
  std::vector<std::string_view> names;
  for (const Claim& claim : claims) names.push_back(claim.mutex);
  return names;
}

}  // namespace

Answers MutexCollection::contend(Connection& connection, std::span<const Claim> claims,
                                 LocalTime deadline) const {
  const bool renews = claims.front().renews();
  if (claims.size() > 1) {
    return renews ? renew_many(connection, claims, deadline)
                  : take_many(connection, claims, deadline);
  }
  Answers answers;
  answers.push_back(renews ? renew_one(connection, claims.front(), deadline)
                           : take_one(connection, claims.front(), deadline));
  return answers;
}

Answer MutexCollection::take_one(Connection& connection, const Claim& claim,
                                 LocalTime deadline) const {
  Document filter;
  filter.text("_id", claim.mutex);
  filter.and_of(may_take(claim));
  const Document change = taken(claim);
  if (const auto seen = modify(connection, filter, change, deadline)) return *seen;
  auto found = look(connection, {&claim.mutex, 1}, deadline).front();
  if (!found) {
    create(connection, {&claim.mutex, 1}, deadline);
    if (const auto seen = modify(connection, filter, change, deadline)) return *seen;
    found = look(connection, {&claim.mutex, 1}, deadline).front();
  }
  // It may be free by now. Whether to claim it once more is for the engine to say.
  return found ? answer_to_take(*found, claim) : Answer(Blocked{});
}

Answers MutexCollection::take_many(Connection& connection, std::span<const Claim> claims,
                                   LocalTime deadline) const {
  const std::vector<std::string_view> names = names_of(claims);
  const auto take = [&](std::span<const std::size_t> which) {
    std::vector<Update> updates;
    for (const std::size_t i : which) {
      Document filter;
      filter.text("_id", claims[i].mutex);
      filter.and_of(may_take(claims[i]));
      updates.push_back({std::move(filter), taken(claims[i]), false});
    }
    update(connection, update_command(name_, updates), deadline);
  };
  std::vector<std::size_t> all(claims.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  take(all);
  auto found = look(connection, names, deadline);
  std::vector<std::size_t> missing;
  std::vector<std::string_view> missing_names;
  for (const std::size_t i : all) {
    if (found[i]) continue;
    missing.push_back(i);
    missing_names.push_back(names[i]);
  }
  if (!missing.empty()) {
    create(connection, missing_names, deadline);
    take(missing);
    auto again = look(connection, missing_names, deadline);
    for (std::size_t i = 0; i < missing.size(); ++i) found[missing[i]] = std::move(again[i]);
  }
  Answers answers;
  for (const std::size_t i : all) {
    answers.push_back(found[i] ? answer_to_take(std::move(*found[i]), claims[i])
                               : Answer(Blocked{}));
  }
  return answers;
}

Answer MutexCollection::renew_one(Connection& connection, const Claim& claim,
                                  LocalTime deadline) const {
  const auto seen =
      modify(connection, may_renew(claim), renewed(claim.ttl, claim.transition), deadline);
  if (seen) return *seen;
  return observe(connection, {&claim.mutex, 1}, deadline).front();
}

// A wire id belongs to one mutex and one term: who is matched by _id and ownerId is a term of ours.
Answers MutexCollection::renew_many(Connection& connection, std::span<const Claim> claims,
                                    LocalTime deadline) const {
  std::map<std::pair<milliseconds, milliseconds>,
           std::pair<std::vector<std::string_view>, std::vector<std::string_view>>>
      alike;
  for (const Claim& claim : claims) {
    auto& [names, ids] = alike[{claim.ttl, claim.transition}];
    names.push_back(claim.mutex);
    ids.push_back(claim.wire_id);
  }
  std::vector<Update> updates;
  for (const auto& [lease, members] : alike) {
    Document filter = lease_runs(), names, ids;
    filter.document("_id", names.texts("$in", members.first));
    filter.document("ownerId", ids.texts("$in", members.second));
    updates.push_back({std::move(filter), renewed(lease.first, lease.second), true});
  }
  const std::int64_t matched = update(connection, update_command(name_, updates), deadline);
  const auto now = connection.endpoint().estimated_time();
  if (!now || matched != static_cast<std::int64_t>(claims.size())) {
    return observe(connection, names_of(claims), deadline);
  }
  Answers answers;
  for (const Claim& claim : claims) answers.emplace_back(renewed_term(claim, *now));
  return answers;
}

bool MutexCollection::release(Connection& connection, std::span<const Claim> claims,
                              LocalTime deadline) const {
  std::vector<Update> updates;
  if (claims.size() == 1) {
    const Claim& claim = claims.front();
    updates.push_back({is_term(claim.mutex, claim.wire_id, claim.token), released(), false});
  } else {
    std::vector<std::string_view> ids;
    for (const Claim& claim : claims) ids.push_back(claim.wire_id);
    Document filter, names, owners;
    filter.document("_id", names.texts("$in", names_of(claims)));
    filter.document("ownerId", owners.texts("$in", ids));
    updates.push_back({std::move(filter), released(), true});
  }
  return update(connection, update_command(name_, updates), deadline) > 0;
}

bool MutexCollection::evict(Connection& connection, const Claim& term, Eviction how,
                            LocalTime deadline) const {
  const std::vector<Update> updates{{is_term(term.mutex, term.wire_id, term.token),
                                     how == Eviction::kFreeNow ? released() : evicted(), false}};
  return update(connection, update_command(name_, updates), deadline) > 0;
}

Answers MutexCollection::observe(Connection& connection, std::span<const std::string_view> mutexes,
                                 LocalTime deadline) const {
  auto found = look(connection, mutexes, deadline);
  std::optional<StoreTime> now;
  Answers answers;
  for (auto& each : found) {
    if (!each && !now) now = connection.time(deadline);
    answers.push_back(each ? std::move(*each) : Answer(Observation{MutexOwner::none(), *now}));
  }
  return answers;
}

std::vector<Listed> MutexCollection::list(Connection& connection, std::string_view prefix,
                                          std::string_view after, std::size_t limit,
                                          LocalTime deadline) const {
  constexpr std::size_t kMost = 10'000;  // of ours an answer, which is 16 MB, has room for these
  std::vector<Listed> found;
  std::string last(after);
  bool has_more = true;
  while (has_more && found.size() < limit) {
    const std::size_t most = std::min(limit - found.size(), kMost);
    const Document reply = connection.read(
        list_command(name_, prefix, kit::first_of_page(prefix, last), most), deadline);
    std::size_t came = 0;
    const bool whole = each_document(reply.get(), "cursor.firstBatch", [&](const bson_t* document) {
      ++came;
      const auto name = text_in(document, "_id");
      if (!name) return;
      last = *name;
      const Answer answer = read_answer(document);
      const auto* seen = std::get_if<Observation>(&answer);
      if (seen) found.push_back({last, *seen});
    });
    if (!whole) refuse("an answer that is no list");
    const std::int64_t rest = rest_of(reply.get());
    if (rest != 0) connection.read(kill_command(name_, rest), deadline);
    has_more = came == most || (rest != 0 && came > 0);
  }
  return found;
}

std::optional<Observation> MutexCollection::modify(Connection& connection, const Document& filter,
                                                   const Document& change,
                                                   LocalTime deadline) const {
  const Document reply = connection.write(modify_command(name_, filter, change), deadline);
  bson_iter_t value;
  if (!bson_iter_init_find(&value, reply.get(), "value")) refuse("a reply without a value");
  if (!BSON_ITER_HOLDS_DOCUMENT(&value)) return std::nullopt;
  std::uint32_t length = 0;
  const std::uint8_t* data = nullptr;
  bson_iter_document(&value, &length, &data);
  bson_t document;
  if (!bson_init_static(&document, data, length)) refuse("a reply that is no BSON");
  const Observation seen = read_document(&document, "renewedAt");
  connection.endpoint().note_time(seen.now);
  return seen;
}

std::int64_t MutexCollection::update(Connection& connection, const Document& command,
                                     LocalTime deadline) const {
  const Document reply = connection.write(command, deadline);
  check_write_errors(reply.get(), connection.endpoint().where());
  const auto matched = number_in(reply.get(), "n");
  if (!matched) refuse("a reply without a count");
  return *matched;
}

void MutexCollection::create(Connection& connection, std::span<const std::string_view> mutexes,
                             LocalTime deadline) const {
  try {
    const Document reply = connection.write(insert_command(name_, mutexes), deadline);
    check_write_errors(reply.get(), connection.endpoint().where());
  } catch (const Failure& failure) {
    if (failure.server_code() != ServerCode::kDuplicateKey) throw;
  }
}

std::vector<std::optional<Answer>> MutexCollection::look(Connection& connection,
                                                         std::span<const std::string_view> mutexes,
                                                         LocalTime deadline) const {
  const Document reply = connection.read(observe_command(name_, mutexes), deadline);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < mutexes.size(); ++i) places[mutexes[i]] = i;
  std::vector<std::optional<Answer>> found(mutexes.size());
  const bool whole = each_document(reply.get(), "cursor.firstBatch", [&](const bson_t* document) {
    const auto name = text_in(document, "_id");
    const auto place = name ? places.find(*name) : places.end();
    if (place == places.end()) refuse("an answer about another mutex");
    found[place->second] = read_answer(document);
    const auto* seen = std::get_if<Observation>(&*found[place->second]);
    if (seen) connection.endpoint().note_time(seen->now);
  });
  // What is missing would be taken for free.
  if (!whole || rest_of(reply.get()) != 0) refuse("an answer that is no list, or not a whole one");
  return found;
}

}  // namespace simba::mongodb
