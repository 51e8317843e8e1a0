// The stores of `simba` itself, in place of the table that client/ makes of all of them.
#include "client/registry.h"
#include "simba/memory.h"
#include "simba/sqlite.h"
#include "stores/sqlite/administration.h"

namespace simba::client {

std::vector<StoreEntry> built_in_stores() {
  using Url = std::string_view;
  return {
      {"memory",
       [](Url url, const LogSink&) { return open_memory(url.substr(url.find(':') + 1)); }},
      {"sqlite", [](Url url, const LogSink&) { return open_sqlite(sqlite_options(url)); },
       sqlite::prepare, sqlite::inspect},
  };
}

}  // namespace simba::client
