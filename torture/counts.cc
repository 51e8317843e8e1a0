#include "torture/counts.h"

#include <charconv>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "testing/servers/loopback.h"
#include "testing/servers/tool.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kPatience = 1s;
// Rows stay; what hangs on connections comes and goes with the faults.
constexpr double kRowShare = 0.01, kRows = 2, kShare = 0.1, kConnections = 10, kKeys = 20;

double kib(const std::filesystem::path& file) {
  std::error_code gone;
  const auto size = std::filesystem::file_size(file, gone);
  return gone ? 0 : static_cast<double>(size) / 1'024;
}

// What a tool prints; nothing where it fails.
std::string said(const std::vector<std::string>& words) try {
  return servers::output_of(words, kPatience);
} catch (const std::runtime_error&) {
  return {};
}

// The numbers of a text, each behind its marker; what is not in it has no value.
class Numbers {
 public:
  explicit Numbers(std::string text) : text_('\n' + std::move(text)) {}

  void add(const std::string& marker, Count count) {
    count.value = number_behind(marker);
    counts_.push_back(std::move(count));
  }
  std::optional<double> number_behind(const std::string& marker) const {
    const std::size_t at = text_.find(marker);
    if (at == text_.npos) return std::nullopt;
    double value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [last, error] = std::from_chars(text_.data() + at + marker.size(), end, value);
    return error == std::errc{} ? std::optional(value) : std::nullopt;
  }
  std::vector<Count> counts() && { return std::move(counts_); }

 private:
  const std::string text_;
  std::vector<Count> counts_;
};

std::string ask_mariadb(const std::filesystem::path& socket, const std::string& what) {
  return said({"mariadb", "--no-defaults", "--socket=" + socket.string(), "--user=root", "--batch",
               "--skip-column-names", "--execute=" + what});
}

// A number of microseconds behind a marker.
std::optional<nanoseconds> time_in(const std::string& text, const std::string& marker) {
  const std::optional<double> found = Numbers(text).number_behind(marker);
  if (!found) return std::nullopt;
  return std::chrono::microseconds{static_cast<std::int64_t>(*found)};
}

Count rows() { return {"rows", 0, kRowShare, kRows}; }
Count connections() { return {"connections", 0, kShare, kConnections}; }

}  // namespace

std::vector<Count> count_sqlite(const std::filesystem::path& file) {
  Numbers numbers(
      said({"sqlite3", "-readonly", file.string(), "SELECT count(*) FROM simba_mutex"}));
  numbers.add("\n", rows());
  std::vector<Count> counts = std::move(numbers).counts();
  counts.push_back({"file KiB", kib(file), kShare, 16});
  // It is emptied when it has reached a length, and then written from its start.
  counts.push_back({"log KiB", kib(file.string() + "-wal"), kShare, 1'024});
  return counts;
}

std::vector<Count> count_redis(const std::filesystem::path& socket) {
  Numbers info(said({"redis-cli", "-s", socket.string(), "INFO"}));
  info.add("\nconnected_clients:", connections());
  info.add("\npubsub_channels:", {"channels", 0, kShare, kKeys});
  info.add("\ndb0:keys=", {"keys", 0, kShare, kKeys});
  return std::move(info).counts();
}

std::vector<Count> count_postgres(const std::string& url) {
  const std::string sessions =
      "SELECT 'connections=' || count(*) FROM pg_stat_activity WHERE backend_type = 'client "
      "backend'";
  Numbers numbers(
      said({"psql", "-XAt", "-c", "SELECT 'rows=' || count(*) FROM simba_mutex", "-c", sessions,
            "-c", "SELECT 'table=' || pg_table_size('simba_mutex') / 1024", url}));
  numbers.add("\nrows=", rows());
  numbers.add("\nconnections=", connections());
  // Dead rows are cleared away by the server when it thinks fit.
  numbers.add("\ntable=", {"table KiB", 0, kShare, 512});
  return std::move(numbers).counts();
}

std::vector<Count> count_mariadb(const std::filesystem::path& socket) {
  Numbers numbers(
      ask_mariadb(socket,
                  "SELECT concat('rows=', count(*)) FROM simba_db.simba_mutex; "
                  "SELECT concat('connections=', variable_value) FROM "
                  "information_schema.global_status WHERE variable_name = 'THREADS_CONNECTED'"));
  numbers.add("\nrows=", rows());
  numbers.add("\nconnections=", connections());
  return std::move(numbers).counts();
}

std::vector<Count> count_zookeeper(std::uint16_t port) {
  Numbers numbers(servers::ask(port, "mntr"));
  numbers.add("\nzk_znode_count\t", {"nodes", 0, kShare, kKeys});
  numbers.add("\nzk_ephemerals_count\t", {"ephemerals", 0, kShare, kKeys});
  numbers.add("\nzk_watch_count\t", {"watches", 0, kShare, 200});
  numbers.add("\nzk_num_alive_connections\t", connections());
  return std::move(numbers).counts();
}

std::vector<Count> count_mongodb(const AskMongodb& ask) {
  const auto said = [&](const std::string& command, const std::string& on) {
    try {
      return ask(command, on);
    } catch (const std::runtime_error&) {
      return std::string();
    }
  };
  Numbers numbers(said(R"({"count": "pessimisticLocks"})", "MongoLocks") +
                  said(R"({"serverStatus": 1, "repl": 0, "metrics": 0, "locks": 0})", "admin"));
  numbers.add("\"n\" : ", rows());
  numbers.add("\"connections\" : { \"current\" : ", connections());
  return std::move(numbers).counts();
}

std::optional<nanoseconds> clock_of_redis(const std::filesystem::path& socket) {
  // In a script, as the store asks for it.
  const std::string script =
      "local t = redis.call('TIME') return 't=' .. t[1] .. string.format('%06d', t[2])";
  return time_in(said({"redis-cli", "-s", socket.string(), "--raw", "EVAL", script, "0"}), "t=");
}

std::optional<nanoseconds> clock_of_postgres(const std::string& url) {
  const std::string question =
      "SELECT 't=' || floor(date_part('epoch', clock_timestamp()) * 1000000)::bigint";
  return time_in(said({"psql", "-XAt", "-c", question, url}), "t=");
}

std::optional<nanoseconds> clock_of_mariadb(const std::filesystem::path& socket) {
  return time_in(
      ask_mariadb(socket,
                  "SELECT concat('t=', CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED))"),
      "t=");
}

// "localTime" : { "$date" : "2026-11-16T11:40:12.345Z" }
std::optional<nanoseconds> clock_of_mongodb(const AskMongodb& ask) try {
  const std::string marker = "\"localTime\" : { \"$date\" : \"",
                    text = ask(R"({"hello": 1})", "admin");
  const std::size_t at = text.find(marker);
  if (at == text.npos) return std::nullopt;
  std::istringstream date(text.substr(at + marker.size()));
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  char mark = 0;
  // The dashes are read as signs.
  date >> year >> month >> day >> mark >> hour >> mark >> minute >> mark >> second;
  if (!date) return std::nullopt;
  const std::chrono::sys_days midnight{std::chrono::year{year} / -month / -day};
  return midnight.time_since_epoch() + std::chrono::hours{hour} + std::chrono::minutes{minute} +
         std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>{second});
} catch (const std::runtime_error&) {
  return std::nullopt;
}

}  // namespace simba::torture
