// simba_bench [--json] [--filter TEXT] [--seconds N] [--dir DIRECTORY] [--list]
//
// The library against the raw driver, in the same run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "benchmarks/settings.h"

namespace simba::bench {
namespace {

struct Named {
  const char* name;
  Benchmark run;
};
constexpr Named kBenchmarks[] = {
    {"sqlite-pair", sqlite_pair_normal},
    {"sqlite-pair-full", sqlite_pair_full},
    {"sqlite-store", sqlite_store_alone},
    {"sqlite-lost", sqlite_lost_attempt},
    {"memory-pair", memory_pair},
    {"renewal", renewal},
    {"renewal-of-many", renewal_of_many},
    {"hand-over", hand_over},
    {"hand-over-crowd", hand_over_to_one_of_many},
    {"fairness", fairness},
    {"takeover", takeover},
    {"command", command},
    {"idle-contenders", idle_contenders},
#ifdef SIMBA_BENCH_MYSQL
    {"mysql-pair", mysql_pair},
    {"mysql-seed", mysql_seed},
    {"mysql-lost", mysql_lost},
    {"mysql-hand-over", mysql_hand_over},
    {"mysql-crowd", mysql_hand_over_to_one_of_many},
    {"mysql-doorbell", mysql_doorbell},
    {"mysql-renewal", mysql_renewal},
#endif
#ifdef SIMBA_BENCH_POSTGRES
    {"postgres-pair", postgres_pair},
    {"postgres-seed", postgres_seed},
    {"postgres-lost", postgres_lost},
    {"postgres-hand-over", postgres_hand_over},
    {"postgres-crowd", postgres_hand_over_to_one_of_many},
    {"postgres-renewal", postgres_renewal},
#endif
#ifdef SIMBA_BENCH_MONGODB
    {"mongodb-pair", mongodb_pair},
    {"mongodb-hand-over", mongodb_hand_over},
    {"mongodb-renewal", mongodb_renewal},
#endif
#ifdef SIMBA_BENCH_REDIS
    {"redis-pair", redis_pair},
    {"redis-threads", redis_threads},
    {"redis-hand-over", redis_hand_over},
    {"redis-crowd", redis_hand_over_to_one_of_many},
    {"redis-renewal", redis_renewal},
#endif
#ifdef SIMBA_BENCH_ZOOKEEPER
    {"zookeeper-pair", zookeeper_pair},
    {"zookeeper-hand-over", zookeeper_hand_over},
    {"zookeeper-crowd", zookeeper_hand_over_to_one_of_many},
    {"zookeeper-idle", zookeeper_idle},
#endif
};

struct Peer {
  const char* name;
  int (*run)(char** arguments);
};
constexpr Peer kPeers[] = {
    {"hand-over", hand_over_peer},
    {"crowd", crowd_peer},
    {"fairness", fairness_peer},
    {"takeover", takeover_peer},
    {"idle", idle_contenders_peer},
#ifdef SIMBA_BENCH_MYSQL
    {"mysql-catch", mysql_catch_peer},
    {"mysql-doorbell", mysql_doorbell_peer},
#endif
#ifdef SIMBA_BENCH_POSTGRES
    {"postgres-catch", postgres_catch_peer},
#endif
#ifdef SIMBA_BENCH_MONGODB
    {"mongodb-catch", mongodb_catch_peer},
#endif
#ifdef SIMBA_BENCH_REDIS
    {"redis-catch", redis_catch_peer},
#endif
#ifdef SIMBA_BENCH_ZOOKEEPER
    {"zookeeper-catch", zookeeper_catch_peer},
    {"zookeeper-idle", zookeeper_idle_peer},
#endif
};

constexpr const char* kHelp = R"(simba_bench: the library against the raw driver, in the same run

  --filter TEXT   only the benchmarks whose name contains TEXT (--list shows the names)
  --seconds N     how long a loop runs; 2 by default, the whole then takes about two minutes
  --dir DIR       where the files go: what a disk costs is measured on its own disk
  --json          one object per line
  --list          the names

The ratio is raw time / our time: 1 is as fast as the raw driver. Both took turns in one process, pinned to
one core. A/A compares the raw loop with itself: outside 0.99 to 1.01 the row is void, run it again on a
quieter machine. Exit code 1: a target was missed.
)";

struct Options {
  Settings settings;
  Report::Format format = Report::Format::kTable;
  std::string filter;
  std::string directory;
};

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "simba_bench: %s; see simba_bench --help\n", why.c_str());
  std::exit(64);
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] {
      if (i + 1 == words.size()) refuse(words[i] + " wants a value");
      return words[++i];
    };
    if (words[i] == "--json") {
      options.format = Report::Format::kJson;
    } else if (words[i] == "--filter") {
      options.filter = value();
    } else if (words[i] == "--dir") {
      options.directory = value();
    } else if (words[i] == "--seconds") {
      const std::string text = value();
      options.settings.seconds = std::atof(text.c_str());
      if (!(options.settings.seconds > 0)) refuse("--seconds " + text + " is no time");
    } else {
      refuse("there is no option '" + words[i] + "'");
    }
  }
  return options;
}

// Private and empty; gone with this.
class Scratch {
 public:
  explicit Scratch(const std::string& parent) {
    std::string name = (std::filesystem::path(parent) / "simba-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) refuse("no directory can be made in " + parent);
    directory_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

int run_peer(const std::string& name, char** arguments) {
  for (const Peer& peer : kPeers) {
    if (name == peer.name) return peer.run(arguments);
  }
  refuse("there is no peer '" + name + "'");
}

int run_all(Options options) {
  const Scratch scratch(options.directory.empty() ? std::filesystem::temp_directory_path().string()
                                                  : options.directory);
  Report report(options.format);
  bool any = false;
  for (const Named& benchmark : kBenchmarks) {
    if (std::string(benchmark.name).find(options.filter) == std::string::npos) continue;
    any = true;
    options.settings.directory = scratch.directory() / benchmark.name;
    std::filesystem::create_directory(options.settings.directory);
    std::filesystem::permissions(options.settings.directory, std::filesystem::perms::owner_all);
    benchmark.run(options.settings, report);
  }
  if (!any) refuse("no benchmark's name contains '" + options.filter + "'");
  return report.all_met() ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() > 2 && words[0] == "--peer") return run_peer(words[1], argv + 3);
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (std::find(words.begin(), words.end(), "--list") != words.end()) {
    for (const Named& benchmark : kBenchmarks) std::puts(benchmark.name);
    return 0;
  }
  Options options = parse(words);
  options.settings.program = std::filesystem::read_symlink("/proc/self/exe").string();
  return run_all(std::move(options));
}

}  // namespace
}  // namespace simba::bench

int main(int argc, char** argv) {
  try {
    return simba::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simba_bench: %s\n", error.what());
    return 2;
  }
}
