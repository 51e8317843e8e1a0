// The stores of `simba` itself, in place of the table that client/ makes of all of them.
#include "client/registry.h"
#include "simba/memory.h"
#include "simba/sqlite.h"
#include "stores/sqlite/administration.h"

namespace simba::client {

std::vector<StoreEntry> built_in_stores() {
  using Url = std::string_view;
  return {
      {.scheme = "memory",
       .open = [](Url url, const LogSink&) { return open_memory(url.substr(url.find(':') + 1)); }},
      {.scheme = "sqlite",
       .open = [](Url url, const LogSink&) { return open_sqlite(sqlite_options(url)); },
       .prepare = sqlite::prepare,
       .inspect = sqlite::inspect,
       .missing = sqlite::missing},
  };
}

}  // namespace simba::client
