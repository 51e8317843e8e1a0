#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simba/store.h"
#include "stores/mysql/endpoint.h"
#include "stores/mysql/prepared.h"

namespace simba::mysql {

// Whether the server only reads. Up to MariaDB 11 and in MySQL read_only is 0 or 1, later it is a
// text: OFF, or how much is refused.
std::string only_reads_sql(const std::string& value = "@@global.read_only");

// What a statement has to know of the server and of the table it finds there.
struct Shape {
  struct Text {
    std::string charset, collation;  // both empty: bytes
    bool is_binary() const { return charset.empty(); }
  };
  bool is_mariadb = true;
  std::string as_the_server_reads;  // see Connection; for each write: the server may be demoted
  Text mutex, owner;
  bool has_token = true;        // else it is a table of the JVM project before 3.3
  bool has_primary_key = true;  // one of that name
  std::size_t owner_length = 128;
};

// The largest token that a table without a column for it can have had: there it is the version.
inline constexpr Token kMostVersion = 4'294'967'295;

// The statements on a table. Those of one claim are prepared. Those of many are texts of several
// statements, for one round trip: libmariadb prepares no such thing.
struct Statements {
  // Prepared, in this order.
  enum Which : std::size_t { kTake, kTakeAgain, kRenew, kRelease, kObserve };
  static constexpr const char* kRowColumns = "ssnnnnn";

  Statements(const Endpoint& endpoint, const Shape& shape);

  const Shape shape;
  std::vector<Prepared::Text> prepared;

  // `limit` is the server's, of what writes, all of it together. Rows: those of the row, then the
  // place of the claim (from 1), and whether this call wrote it.
  std::string take_one(const Claim& claim) const;  // of MySQL
  std::string take_many(std::span<const Claim> claims, milliseconds limit) const;
  std::string renew_many(std::span<const Claim> claims, milliseconds limit) const;
  // Rows: place, the owner, who waits for it (two connections).
  std::string release_many(std::span<const Claim> claims, std::span<const std::string> bells,
                           milliseconds limit) const;
  std::string observe_many(std::span<const std::string_view> mutexes) const;
  // Rows: one, that of the row, then its version.
  std::string row(std::string_view mutex) const;
  // Changes one row or none.
  std::string evict(const Claim& term, Eviction how, const std::string& bell,
                    milliseconds limit) const;
  // Rows: those of the row.
  std::string list(std::string_view prefix, std::string_view after, std::size_t limit) const;

 private:
  std::string filled(std::string_view text) const;
  // What goes before a write: it is decided as one of a replica, and ended, by the server.
  std::string limited(milliseconds limit) const;
  std::string contend_many(std::string_view fits, std::string_view assignments,
                           std::span<const Claim> claims, milliseconds limit) const;

  const std::string table_;
};

// Where the columns of a row are in an answer.
enum Column : unsigned {
  kMutex,
  kOwner,
  kAcquired,
  kTtl,
  kTransition,
  kToken,
  kNow,
  kPlace,
  kDone
};

}  // namespace simba::mysql
