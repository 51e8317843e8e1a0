// The stores of `simba` itself, in place of the table that client/ makes of all of them.
#include "client/registry.h"
#include "simba/memory.h"
#include "simba/sqlite.h"

namespace simba::client {

std::vector<std::pair<std::string, OpenStore>> built_in_stores() {
  return {
      {"memory", [](std::string_view url,
                    const LogSink&) { return open_memory(url.substr(url.find(':') + 1)); }},
      {"sqlite",
       [](std::string_view url, const LogSink&) { return open_sqlite(sqlite_options(url)); }},
  };
}

}  // namespace simba::client
