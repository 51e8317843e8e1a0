#pragma once

#include <filesystem>
#include <string>

#include "benchmarks/report.h"

namespace simba::bench {

struct Settings {
  double seconds = 2;               // of one row that is measured by a loop
  std::filesystem::path directory;  // for files of the benchmarks, private and empty
  std::string program;              // this one: other processes are copies of it

  std::string file(const std::string& name) const { return (directory / name).string(); }
  std::string url(const std::string& name, bool full = false) const {
    return "sqlite:" + file(name) + (full ? "?synchronous=full" : "");
  }
};

// Each measures what its name says and adds its rows.
using Benchmark = void (*)(const Settings& settings, Report& report);

void sqlite_pair_normal(const Settings&, Report&);
void sqlite_pair_full(const Settings&, Report&);
void sqlite_store_alone(const Settings&, Report&);
void sqlite_lost_attempt(const Settings&, Report&);
void memory_pair(const Settings&, Report&);
void renewal(const Settings&, Report&);
void hand_over(const Settings&, Report&);
void hand_over_to_one_of_many(const Settings&, Report&);
void fairness(const Settings&, Report&);
void takeover(const Settings&, Report&);
void renewal_of_many(const Settings&, Report&);
void command(const Settings&, Report&);
void idle_contenders(const Settings&, Report&);
void mysql_pair(const Settings&, Report&);
void mysql_seed(const Settings&, Report&);
void mysql_lost(const Settings&, Report&);
void mysql_hand_over(const Settings&, Report&);
void mysql_hand_over_to_one_of_many(const Settings&, Report&);
void mysql_doorbell(const Settings&, Report&);
void mysql_renewal(const Settings&, Report&);
void postgres_pair(const Settings&, Report&);
void postgres_seed(const Settings&, Report&);
void postgres_lost(const Settings&, Report&);
void postgres_hand_over(const Settings&, Report&);
void postgres_hand_over_to_one_of_many(const Settings&, Report&);
void postgres_renewal(const Settings&, Report&);
void redis_pair(const Settings&, Report&);
void redis_threads(const Settings&, Report&);
void redis_hand_over(const Settings&, Report&);
void redis_hand_over_to_one_of_many(const Settings&, Report&);
void redis_renewal(const Settings&, Report&);
void mongodb_pair(const Settings&, Report&);
void mongodb_renewal(const Settings&, Report&);
void mongodb_hand_over(const Settings&, Report&);
void zookeeper_pair(const Settings&, Report&);
void zookeeper_hand_over(const Settings&, Report&);
void zookeeper_hand_over_to_one_of_many(const Settings&, Report&);
void zookeeper_idle(const Settings&, Report&);

// What another process of a benchmark does; its arguments are between the two.
int hand_over_peer(char** arguments);
int crowd_peer(char** arguments);
int fairness_peer(char** arguments);
int takeover_peer(char** arguments);
int idle_contenders_peer(char** arguments);
int mysql_catch_peer(char** arguments);
int mysql_doorbell_peer(char** arguments);
int postgres_catch_peer(char** arguments);
int redis_catch_peer(char** arguments);
int mongodb_catch_peer(char** arguments);
int zookeeper_catch_peer(char** arguments);
int zookeeper_idle_peer(char** arguments);

}  // namespace simba::bench
