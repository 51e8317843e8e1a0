#include "stores/mongodb/connection.h"

#include <algorithm>

namespace simba::mongodb {
namespace {

mongoc_client_t* checked(mongoc_client_t* client, const Endpoint& endpoint) {
  if (client != nullptr) return client;
  throw Error(Errc::kUnreachable, "mongodb at " + endpoint.where() +
                                      ": the pool has no client left: raise its maxPoolSize, or "
                                      "lower connections");
}

using Database = std::unique_ptr<mongoc_database_t, void (*)(mongoc_database_t*)>;

// Without the concerns that the URI, or the owner of the pool, gives its clients.
Database plain_database(mongoc_client_t* client, const std::string& name) {
  static const mongoc_write_concern_t* const none = mongoc_write_concern_new();
  Database database(mongoc_client_get_database(client, name.c_str()), mongoc_database_destroy);
  mongoc_database_set_write_concern(database.get(), none);
  return database;
}

}  // namespace

Connection::Connection(std::shared_ptr<Endpoint> endpoint, const kit::StopSignal& stop)
    : endpoint_(std::move(endpoint)),
      client_(checked(endpoint_->pop(), *endpoint_)),
      limit_(endpoint_->limit_of(client_)) {
  try {
    limit_ = {BootClock::now() + endpoint_->options().connect_timeout, &stop};
    endpoint_->await_primary(limit_);
    look_around();
    limit_ = {};
  } catch (...) {
    limit_ = {};
    endpoint_->push(client_);
    throw;
  }
}

Connection::~Connection() {
  limit_ = {};
  endpoint_->push(client_);
}

void Connection::look_around() {
  Document hello;
  hello.number("isMaster", 1);  // every version knows this name
  const Document reply = read(hello, limit_.deadline);
  check_greeting(reply.get(), endpoint_->where());
}

// Milliseconds that the server may take, of those that a primary has left of them.
std::int64_t Connection::begin(LocalTime deadline) {
  limit_.deadline = deadline;
  endpoint_->await_primary(limit_);
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - BootClock::now()).count();
  if (left <= 0) {
    throw Error(Errc::kTimeout, "mongodb at " + endpoint_->where() +
                                    ": the deadline had passed before the call; nothing was sent");
  }
  return std::clamp<std::int64_t>(left * 9 / 10, 1, 1'000'000'000);
}

void Connection::fail(const bson_error_t& error, const bson_t* reply) {
  const Failure trouble = failure(error, reply, endpoint_->where());
  broken_ = broken_ || breaks_connection(trouble);
  const bool late = trouble.server_code() == 0 && trouble.errc() == Errc::kUnreachable &&
                    BootClock::now() >= limit_.deadline;
  if (!late) throw Failure(trouble);
  throw Failure(Errc::kTimeout, trouble.what(), 0);
}

// Sent as a write is: what the driver takes for a read gets the client's read concern, beside ours,
// and on a direct connection leave to be answered by a secondary.
Document Connection::read(const Document& command, LocalTime deadline) {
  Document timed(command);
  timed.number("maxTimeMS", begin(deadline));
  const Database database = plain_database(client_, endpoint_->options().database);
  bson_t reply;
  bson_error_t error{};
  const bool done =
      mongoc_database_write_command_with_opts(database.get(), timed.get(), nullptr, &reply, &error);
  Document kept(bson_copy(&reply));
  bson_destroy(&reply);
  if (!done) fail(error, kept.get());
  return kept;
}

Document Connection::write(const Document& command, LocalTime deadline) {
  const std::int64_t left = begin(deadline);
  Document timed(command), options, concern;
  timed.number("maxTimeMS", left);
  concern.text("w", "majority").number("wtimeout", left);
  options.document("writeConcern", concern);
  bson_t reply;
  bson_error_t error{};
  const bool done = mongoc_client_write_command_with_opts(
      client_, endpoint_->options().database.c_str(), timed.get(), options.get(), &reply, &error);
  Document kept(bson_copy(&reply));
  bson_destroy(&reply);
  bson_iter_t at, inner;
  // Ambiguous also when the reply holds a document: it may be rolled back.
  if (bson_iter_init_find(&at, kept.get(), "writeConcernError") && BSON_ITER_HOLDS_DOCUMENT(&at) &&
      bson_iter_recurse(&at, &inner)) {
    std::int64_t code = 64;
    std::string text = "write concern error";
    while (bson_iter_next(&inner)) {
      if (bson_iter_key(&inner) == std::string_view("code")) code = bson_iter_as_int64(&inner);
      if (bson_iter_key(&inner) == std::string_view("errmsg") && BSON_ITER_HOLDS_UTF8(&inner)) {
        text = bson_iter_utf8(&inner, nullptr);
      }
    }
    const Failure trouble = server_failure(static_cast<int>(code), text, endpoint_->where());
    broken_ = broken_ || trouble.errc() == Errc::kUnreachable;
    if (trouble.errc() != Errc::kCorrupt) throw Failure(trouble);
    throw Failure(Errc::kTimeout, trouble.what(), trouble.server_code());
  }
  if (!done) fail(error, kept.get());
  return kept;
}

StoreTime Connection::time(LocalTime deadline) {
  Document hello;
  hello.number("isMaster", 1);
  const Document reply = read(hello, deadline);
  const auto now = number_in(reply.get(), "localTime");
  if (!now) {
    throw Error(Errc::kCorrupt, "mongodb at " + endpoint_->where() + ": no time in its greeting");
  }
  return StoreTime{milliseconds{*now}};
}

}  // namespace simba::mongodb
