#pragma once

#include <mongoc/mongoc.h>

#include <memory>
#include <string>

#include "simba/time.h"
#include "stores/kit/pool.h"
#include "stores/kit/worker.h"
#include "stores/mongodb/document.h"
#include "stores/mongodb/endpoint.h"
#include "stores/mongodb/failure.h"

namespace simba::mongodb {

// One client of the driver, with deadlines.
//
// Threads: one at a time. Errors: Error, see failure.h. After some of them it is not usable any
// more.
class Connection : public kit::Pooled {
 public:
  // Connects, blocking, and looks whether the server is new enough.
  Connection(std::shared_ptr<Endpoint> endpoint, const kit::StopSignal& stop);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  bool is_usable() noexcept override { return !broken_; }

  // A command on our database, by the primary. A write waits for a majority; a write concern error
  // in its reply is thrown, write errors in it are the caller's.
  Document read(const Document& command, LocalTime deadline);
  Document write(const Document& command, LocalTime deadline);
  // The server's clock.
  StoreTime time(LocalTime deadline);

  mongoc_client_t* client() const { return client_; }
  Endpoint& endpoint() const { return *endpoint_; }
  Limit& limit() const { return limit_; }
  [[noreturn]] void fail(const bson_error_t& error, const bson_t* reply);

 private:
  void look_around();
  std::int64_t begin(LocalTime deadline);

  const std::shared_ptr<Endpoint> endpoint_;
  mongoc_client_t* const client_;
  Limit& limit_;
  bool broken_ = false;
};

}  // namespace simba::mongodb
