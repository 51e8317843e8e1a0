#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "simba/export.h"
#include "simba/log.h"
#include "simba/store.h"
#include "simba/time.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier): libmongoc's mongoc_client_pool_t
struct _mongoc_client_pool_t;

// The MongoDB store: one document for each mutex, decided by the server's clock, waiters woken by a
// change stream. The documents are those of the Java pessimistic-lock reference, so that both share
// a lock.
//
// What it holds through a crash, a failover, a cut network: docs/mongodb.md.
namespace simba::inline v0 {

struct SIMBA_EXPORT MongodbOptions {
  std::string uri = "mongodb://127.0.0.1:27017";  // of libmongoc; may hold a password
  // Instead of `uri`: a pool of yours, which outlives the store. Its socketTimeoutMS and
  // serverSelectionTimeoutMS then bound what the network does to a call. The store keeps up to
  // `connections` + 1 of its clients, and waits at its end until they are back, for 10 s at most:
  // where one hangs in the network, the pool has to live on for as long as these two say.
  _mongoc_client_pool_t* pool = nullptr;
  std::string database = "MongoLocks";
  std::string collection = "pessimisticLocks";
  std::size_t connections = 8;  // at most, one more listens once somebody waits; 2 to 1000
  milliseconds connect_timeout{5'000};
  LogSink log;  // what happens to connections
};

// A URI of libmongoc with three parameters of ours, `database`, `collection` and `connections`:
// `mongodb://user@host,host/?replicaSet=rs0&tls=true&collection=pessimisticLocks`. Throws Error
// (kMisconfigured) for what it does not know; never repeats a value.
SIMBA_EXPORT MongodbOptions mongodb_options(std::string_view url);

// Does not connect: trouble shows in the calls, and they succeed once it has passed.
// Errors: kMisconfigured for options that cannot work.
SIMBA_EXPORT std::shared_ptr<Store> open_mongodb(const MongodbOptions& options);

}  // namespace simba::inline v0
