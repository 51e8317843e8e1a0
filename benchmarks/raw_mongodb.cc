#include "benchmarks/raw_mongodb.h"

#include <mongoc/mongoc.h>

#include <cstdio>
#include <cstdlib>

namespace simba::bench {
namespace {

constexpr const char* kDatabase = "bench";
constexpr std::int64_t kTtl = 10'000, kLease = 16'000, kLimit = 1'125;  // milliseconds
constexpr std::int64_t kLastToken = 9223372036854775807;

[[noreturn]] void die(const char* what, const char* why) {
  std::fprintf(stderr, "raw mongodb: %s: %s\n", what, why);
  std::exit(2);
}

// clang-format off
#define NOW "{", "$toLong", "$$NOW", "}"
#define OURS "{", "$and", "[", "{", "$eq", "[", "$wireId", "$ownerId", "]", "}", \
               "{", "$lt", "[", "{", "$max", "[", "$renewedAt", "$ttlMs", "]", "}", BCON_INT64(kLastToken), "]", "}", \
               "]", "}"
#define LEASE_END "{", "$cond", "[", OURS, \
                    "{", "$min", "[", "$expiresAt", "{", "$add", "[", "$renewedAt", "$ttlMs", "]", "}", "]", "}", \
                    "$expiresAt", "]", "}"
// clang-format on

// What the store sends, with its limits.
bson_t* take_command(const char* collection, const char* mutex, const char* owner) {
  // clang-format off
#define SAME "{", "$and", "[", "{", "$eq", "[", "$ownerId", "{", "$literal", BCON_UTF8(owner), "}", "]", "}", \
               "{", "$eq", "[", "$wireId", "{", "$literal", BCON_UTF8(owner), "}", "]", "}", \
               "{", "$gte", "[", LEASE_END, NOW, "]", "}", "]", "}"
#define TOKEN "{", "$ifNull", "[", "$token", BCON_INT64(0), "]", "}"
  return BCON_NEW("findAndModify", BCON_UTF8(collection),
    "query", "{", "_id", BCON_UTF8(mutex), "$expr", "{", "$or", "[",
      "{", "$and", "[", "{", "$lt", "[", LEASE_END, NOW, "]", "}",
                        "{", "$lt", "[", TOKEN, BCON_INT64(kLastToken), "]", "}", "]", "}",
      SAME, "]", "}", "}",
    "update", "[", "{", "$set", "{",
      "ownerId", "{", "$literal", BCON_UTF8(owner), "}", "wireId", "{", "$literal", BCON_UTF8(owner), "}",
      "ttlMs", BCON_INT64(kLease), "expiresAt", "{", "$add", "[", NOW, BCON_INT64(kLease), "]", "}",
      "ttlAt", "{", "$add", "[", NOW, BCON_INT64(kTtl), "]", "}", "renewedAt", NOW,
      "acquiredAt", "{", "$cond", "[", SAME, "$acquiredAt", NOW, "]", "}",
      "token", "{", "$cond", "[", SAME, "$token", "{", "$max", "[",
        "{", "$add", "[", "{", "$max", "[", TOKEN, BCON_INT64(0), "]", "}", BCON_INT64(1), "]", "}",
        "{", "$multiply", "[", NOW, BCON_INT64(1000), "]", "}", "]", "}", "]", "}",
    "}", "}", "]", "new", BCON_BOOL(true), "maxTimeMS", BCON_INT64(kLimit));
  // clang-format on
}

bson_t* concern() {
  return BCON_NEW("writeConcern", "{", "w", "majority", "wtimeout", BCON_INT64(kLimit), "}");
}

std::int64_t number(const bson_t* reply, const char* path) {
  bson_iter_t start, at;
  if (!bson_iter_init(&start, reply) || !bson_iter_find_descendant(&start, path, &at)) return 0;
  return bson_iter_as_int64(&at);
}

// The number at `path` in the reply.
std::int64_t run(mongoc_client_t* client, bson_t* command, const char* path) {
  bson_t* options = concern();
  bson_t reply;
  bson_error_t error;
  if (!mongoc_client_write_command_with_opts(client, kDatabase, command, options, &reply, &error)) {
    die("command", error.message);
  }
  const std::int64_t found = number(&reply, path);
  bson_destroy(&reply);
  bson_destroy(options);
  bson_destroy(command);
  return found;
}

}  // namespace

RawMongodb::RawMongodb(const std::string& uri, const std::string& collection)
    : client_((mongoc_init(), mongoc_client_new(uri.c_str()))), collection_(collection) {
  if (client_ == nullptr) die("connect", uri.c_str());
}

RawMongodb::~RawMongodb() {
  if (stream_ != nullptr) mongoc_change_stream_destroy(stream_);
  if (stream_of_ != nullptr) mongoc_collection_destroy(stream_of_);
  mongoc_client_destroy(client_);
}

void RawMongodb::create(const std::string& mutex) {
  run(client_,
      BCON_NEW("update", BCON_UTF8(collection_.c_str()), "updates", "[", "{", "q", "{", "_id",
               BCON_UTF8(mutex.c_str()), "}", "u", "{", "$set", "{", "ownerId", BCON_UTF8(""),
               "wireId", BCON_UTF8(""), "ttlMs", BCON_INT64(0), "expiresAt", BCON_INT64(0), "}",
               "}", "upsert", BCON_BOOL(true), "}", "]"),
      "n");
}

std::int64_t RawMongodb::take(const std::string& mutex, const std::string& owner) {
  return run(client_, take_command(collection_.c_str(), mutex.c_str(), owner.c_str()),
             "value.token");
}

bool RawMongodb::release(const std::string& mutex, const std::string& owner, std::int64_t token) {
  return run(client_,
             BCON_NEW("update", BCON_UTF8(collection_.c_str()), "updates", "[", "{", "q", "{",
                      "_id", BCON_UTF8(mutex.c_str()), "ownerId", BCON_UTF8(owner.c_str()),
                      "wireId", BCON_UTF8(owner.c_str()), "token", BCON_INT64(token), "}", "u", "[",
                      "{", "$set", "{", "ownerId", BCON_UTF8(""), "wireId", BCON_UTF8(""), "ttlMs",
                      BCON_INT64(0), "expiresAt", BCON_INT64(0), "ttlAt", BCON_INT64(0),
                      "acquiredAt", BCON_INT64(0), "}", "}", "]", "multi", BCON_BOOL(false), "}",
                      "]", "ordered", BCON_BOOL(false), "maxTimeMS", BCON_INT64(kLimit)),
             "n") == 1;
}

std::int64_t RawMongodb::renew(const std::vector<std::string>& mutexes,
                               const std::vector<std::string>& owners) {
  bson_t ids, wires;
  const auto fill = [](bson_t& array, const std::vector<std::string>& texts) {
    bson_init(&array);
    std::uint32_t index = 0;
    for (const std::string& text : texts) {
      char buffer[12];  // NOLINT(modernize-avoid-c-arrays): libbson's
      const char* key = nullptr;
      bson_uint32_to_string(index++, &key, buffer, sizeof buffer);
      bson_append_utf8(&array, key, -1, text.data(), static_cast<int>(text.size()));
    }
  };
  fill(ids, mutexes);
  fill(wires, owners);
  bson_t* command = BCON_NEW(
      "update", BCON_UTF8(collection_.c_str()), "updates", "[", "{", "q", "{", "$expr", "{", "$gte",
      "[", LEASE_END, NOW, "]", "}", "_id", "{", "$in", BCON_ARRAY(&ids), "}", "ownerId", "{",
      "$in", BCON_ARRAY(&wires), "}", "}", "u", "[", "{", "$set", "{", "ttlMs", BCON_INT64(kLease),
      "expiresAt", "{", "$add", "[", NOW, BCON_INT64(kLease), "]", "}", "ttlAt", "{", "$add", "[",
      NOW, BCON_INT64(kTtl), "]", "}", "renewedAt", NOW, "}", "}", "]", "multi", BCON_BOOL(true),
      "}", "]", "ordered", BCON_BOOL(false), "maxTimeMS", BCON_INT64(60'000));
  const std::int64_t matched = run(client_, command, "n");
  bson_destroy(&ids);
  bson_destroy(&wires);
  return matched;
}

void RawMongodb::listen() {
  stream_of_ = mongoc_client_get_collection(client_, kDatabase, collection_.c_str());
  bson_t* pipeline = BCON_NEW("pipeline", "[", "{", "$match", "{",
                              "updateDescription.updatedFields.ownerId", BCON_UTF8(""), "}", "}",
                              "{", "$project", "{", "documentKey", BCON_INT32(1), "}", "}", "]");
  bson_t* options = BCON_NEW("maxAwaitTimeMS", BCON_INT64(500));
  stream_ = mongoc_collection_watch(stream_of_, pipeline, options);
  bson_destroy(pipeline);
  bson_destroy(options);
}

void RawMongodb::wait_for_release() {
  const bson_t* change = nullptr;
  if (mongoc_change_stream_next(stream_, &change)) return;
  bson_error_t error;
  const bson_t* reply = nullptr;
  if (mongoc_change_stream_error_document(stream_, &error, &reply)) die("watch", error.message);
}

}  // namespace simba::bench
