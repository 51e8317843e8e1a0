#include "stores/mongodb/statements.h"

#include <vector>

#include "stores/kit/claims.h"

namespace simba::mongodb {
namespace {

constexpr std::int64_t kMicroseconds = 1'000;
constexpr auto kLastToken = static_cast<std::int64_t>(kit::kMaxToken);

// The server's clock in milliseconds. Made once: it stands in every command.
const Document& now() {
  static const Document clock = just("$toLong", "$$NOW");
  return clock;
}

Document now_plus(milliseconds span) {
  return Expression("$add").of(now()).of(span.count()).done();
}

// Never a field or a variable, whatever it begins with.
Document literal(std::string_view text) { return just("$literal", text); }

const Document& token_or_zero() {
  static const Document token = Expression("$ifNull").of("$token").of(0).done();
  return token;
}

// That what it says of its lease is ours. Where one of the two is no number, their larger one is
// above all numbers: nothing is counted with it.
const Document& is_ours() {
  static const Document numbers = Expression("$max").of("$renewedAt").of("$ttlMs").done();
  static const Document ours = Expression("$and")
                                   .of(Expression("$eq").of("$wireId").of("$ownerId").done())
                                   .of(Expression("$lt").of(numbers).of(kLastToken).done())
                                   .done();
  return ours;
}

// Java's heartbeat puts off whatever it once held, without a look at the owner. So a lease of ours
// ends when we said, where that is sooner. $min passes over what is missing.
const Document& lease_end() {
  static const Document said = Expression("$add").of("$renewedAt").of("$ttlMs").done();
  static const Document end = Expression("$cond")
                                  .of(is_ours())
                                  .of(Expression("$min").of("$expiresAt").of(said).done())
                                  .of("$expiresAt")
                                  .done();
  return end;
}

const Document& runs() {
  static const Document running = Expression("$gte").of(lease_end()).of(now()).done();
  return running;
}

const Document& is_free() {
  static const Document free = Expression("$and")
                                   .of(Expression("$lt").of(lease_end()).of(now()).done())
                                   .of(Expression("$lt").of(token_or_zero()).of(kLastToken).done())
                                   .done();
  return free;
}

Document is_running_term_of(std::string_view wire_id) {
  const Document id = literal(wire_id);
  return Expression("$and")
      .of(Expression("$eq").of("$ownerId").of(id).done())
      .of(Expression("$eq").of("$wireId").of(id).done())
      .of(runs())
      .done();
}

// R2: above all that is known, and above the time, because who deletes the document deletes its
// counter.
Document next_token(Token floor) {
  const Document highest =
      Expression("$max").of(token_or_zero()).of(static_cast<std::int64_t>(floor)).done();
  const Document time = Expression("$multiply").of(now()).of(kMicroseconds).done();
  return Expression("$max").of(Expression("$add").of(highest).of(1).done()).of(time).done();
}

Document either(const Document& condition, std::string_view field, const Document& otherwise) {
  return Expression("$cond").of(condition).of(field).of(otherwise).done();
}

Document& set_lease(Document& fields, milliseconds ttl, milliseconds transition) {
  fields.number("ttlMs", (ttl + transition).count());
  fields.document("expiresAt", now_plus(ttl + transition));
  fields.document("ttlAt", now_plus(ttl));
  return fields.document("renewedAt", now());
}

Document in(std::span<const std::string_view> values) {
  Document made;
  made.texts("$in", values);
  return made;
}

// What an answer is made of.
const Document& shown() {
  static const Document fields = [] {
    Document made;
    for (const char* name :
         {"ownerId", "expiresAt", "wireId", "ttlAt", "acquiredAt", "token", "ttlMs", "renewedAt"}) {
      made.number(name, 1);
    }
    made.document("now", now());
    return made;
  }();
  return fields;
}

Document aggregate(const std::string& collection, std::span<const Document> pipeline,
                   std::size_t most) {
  Document command, cursor;
  cursor.number("batchSize", static_cast<std::int64_t>(most + 1));
  command.text("aggregate", collection).documents("pipeline", pipeline);
  command.document("cursor", cursor);
  return command;
}

}  // namespace

Document may_take(const Claim& claim) {
  return just("$expr",
              Expression("$or").of(is_free()).of(is_running_term_of(claim.wire_id)).done());
}

Document taken(const Claim& claim) {
  const Document same = is_running_term_of(claim.wire_id), id = literal(claim.wire_id);
  Document fields;
  fields.document("ownerId", id).document("wireId", id);
  set_lease(fields, claim.ttl, claim.transition);
  fields.document("acquiredAt", either(same, "$acquiredAt", now()));
  fields.document("token", either(same, "$token", next_token(claim.floor)));
  return fields;
}

Document lease_runs() { return just("$expr", runs()); }

Document may_renew(const Claim& claim) {
  Document filter = is_term(claim.mutex, claim.wire_id, claim.token);
  filter.document("$expr", runs());
  return filter;
}

Document renewed(milliseconds ttl, milliseconds transition) {
  Document fields;
  set_lease(fields, ttl, transition);
  return fields;
}

Document released() {
  Document fields;
  fields.text("ownerId", "").text("wireId", "");
  for (const char* name : {"ttlMs", "expiresAt", "ttlAt", "acquiredAt"}) fields.number(name, 0);
  return fields;
}

// An empty owner looks like ours: what was left behind in a document of Java's must go.
Document evicted() {
  static const Document renewed_at =
      Expression("$cond").of(is_ours()).of("$renewedAt").of("$$REMOVE").done();
  Document fields;
  fields.text("ownerId", "").text("wireId", "").document("renewedAt", renewed_at);
  return fields;
}

Document is_term(std::string_view mutex, std::string_view wire_id, Token token) {
  Document filter;
  filter.text("_id", mutex).text("ownerId", wire_id);
  if (token != 0) filter.text("wireId", wire_id).number("token", static_cast<std::int64_t>(token));
  return filter;
}

Document placeholder(std::string_view mutex) {
  Document made;
  made.text("_id", mutex).text("ownerId", "").number("ttlMs", 0).number("expiresAt", 0);
  return made;
}

Document update_command(const std::string& collection, std::span<const Update> updates) {
  std::vector<Document> statements;
  statements.reserve(updates.size());
  for (const Update& update : updates) {
    Document statement;
    const Document stage = just("$set", update.change);
    statement.document("q", update.filter).documents("u", {&stage, 1}).flag("multi", update.many);
    statements.push_back(std::move(statement));
  }
  Document command;
  command.text("update", collection).documents("updates", statements).flag("ordered", false);
  return command;
}

Document modify_command(const std::string& collection, const Document& filter,
                        const Document& change) {
  Document command;
  const Document stage = just("$set", change);
  command.text("findAndModify", collection).document("query", filter);
  command.documents("update", {&stage, 1}).flag("new", true);
  return command;
}

Document insert_command(const std::string& collection, std::span<const std::string_view> mutexes) {
  std::vector<Document> made;
  for (const std::string_view mutex : mutexes) made.push_back(placeholder(mutex));
  Document command;
  command.text("insert", collection).documents("documents", made).flag("ordered", false);
  return command;
}

// An answer to a claim is made of it: what a failover may still take back is not seen. What a
// majority has acknowledged is, but for a moment after an election; a write before the read, also
// one that matched nothing, waits that moment out.
Document observe_command(const std::string& collection, std::span<const std::string_view> mutexes) {
  const std::vector<Document> pipeline{just("$match", just("_id", in(mutexes))),
                                       just("$project", shown())};
  Document command = aggregate(collection, pipeline, mutexes.size());
  command.document("readConcern", just("level", "majority"));
  return command;
}

Document list_command(const std::string& collection, std::string_view prefix, std::string_view from,
                      std::size_t limit) {
  // Above every name with this prefix: the last character of Unicode, more often than any has room.
  std::string end(prefix);
  for (int i = 0; i < 17; ++i) end += "\xf4\x8f\xbf\xbf";
  Document range, by_name, most;
  range.text("$gte", from).text("$lt", end);
  by_name.number("_id", 1);
  most.number("$limit", static_cast<std::int64_t>(limit));
  const std::vector<Document> pipeline{just("$match", just("_id", range)), just("$sort", by_name),
                                       std::move(most), just("$project", shown())};
  return aggregate(collection, pipeline, limit);
}

Document kill_command(const std::string& collection, std::int64_t cursor) {
  Document command;
  command.text("killCursors", collection).and_of(Expression("cursors").of(cursor).done());
  return command;
}

}  // namespace simba::mongodb
