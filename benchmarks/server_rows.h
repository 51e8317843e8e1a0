#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "benchmarks/catch.h"
#include "benchmarks/pair.h"
#include "benchmarks/settings.h"
#include "testing/servers/server.h"

// What the benchmarks of stores behind a server share.
namespace simba::bench {

void add_skipped_row(const char* name, const char* reason, Report& report);

// None where this machine has none: then the row says so.
template <class Server, class... Settings>
std::unique_ptr<Server> start_server(const char* row, Report& report, const Settings&... settings) {
  try {
    auto server = std::make_unique<Server>(settings...);
    server->start();
    return server;
  } catch (const servers::Unavailable& reason) {
    add_skipped_row(row, reason.what(), report);
    return nullptr;
  }
}

// Its threads, and what they start from now on, run where this thread may.
void bring_here(const servers::Server& server);

// Measured as it comes, and then on one core with the server.
using Measure = std::function<Duel(double seconds)>;
struct Both {
  Duel pinned, unpinned;
};
Both measure_both(const servers::Server& server, const Measure& measure, double seconds,
                  double unpinned_seconds);
void add_row(const servers::Server& server, Report& report, const char* name,
             const Measure& measure, double seconds, std::optional<double> target);

// As add_row(), of a target that the raw driver may miss too, doing the same: then the row says
// nothing. `wall` measures the driver.
void add_row_with_wall(const servers::Server& server, Report& report, const char* name,
                       const Measure& measure, const Measure& wall, double seconds, double target);

// `play` gets a name for its game.
void add_hand_over_row(const servers::Server& server, Report& report, const char* name,
                       const std::function<Duel(const std::string& game)>& play,
                       std::optional<double> target = kHandOverTarget);

}  // namespace simba::bench
