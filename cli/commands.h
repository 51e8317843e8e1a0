#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/config_file.h"
#include "simba/client.h"
#include "simba/options.h"
#include "simba/scheduler.h"
#include "simba/store_entry.h"

// One function per command: what main has parsed goes in, the exit code comes out. Trouble is
// thrown: UsageError, Error, std::system_error.
namespace simba::cli {

class Settings;

enum class Format { kText, kJson };

// What all have in common that run a program: which one, under which mutex.
struct Duty {
  Configured store;
  std::string mutex;
  std::string id, id_origin;  // empty: one is made
  std::vector<std::string> program;
  std::vector<std::string> secrets;  // variables that are for the store alone
  ContendOptions contend;
  nanoseconds kill_after{};
  bool quiet = false;
};

struct RunCommand : Duty {
  std::optional<milliseconds> wait;  // none: as long as it takes
  milliseconds max_hold{0};          // 0: as long as the program runs
};
int run(const RunCommand& command);

enum class Restart { kOnFailure, kAlways, kNever };

struct LeadCommand : Duty {
  Restart restart = Restart::kOnFailure;
  milliseconds delay{1000};      // before the program runs again; doubled at each failure
  unsigned hand_over_after = 5;  // failures in a row; 0: never
};
int lead(const LeadCommand& command);

struct ScheduleCommand : Duty {
  ScheduleConfig period;
  std::optional<std::string> cron;  // instead of the period
};
int schedule(const ScheduleCommand& command);

struct LsCommand {
  Configured store;
  std::string prefix;
  Format format = Format::kText;
  bool free_too = false;
  bool names_only = false;
};
int ls(const LsCommand& command);

struct ShowCommand {
  Configured store;
  std::string mutex;
  Format format = Format::kText;
};
int show(const ShowCommand& command);

struct ReleaseCommand {
  Configured store;
  std::string mutex;
  Format format = Format::kText;
  Eviction how = Eviction::kKeepLease;
  std::optional<Token> token;  // only this term
};
int release(const ReleaseCommand& command);

struct WatchCommand {
  Configured store;
  std::vector<std::string> mutexes;
  Format format = Format::kText;
};
int watch(const WatchCommand& command);

struct InitCommand {
  Configured store;
  Format format = Format::kText;
  Prepare how = Prepare::kNow;
};
int init(const InitCommand& command);

struct DoctorCommand {
  Configured store;
  Format format = Format::kText;
  ContendOptions contend;
  std::string lease_origins = {};  // for people
};
int doctor(const DoctorCommand& command);

struct BenchCommand {
  Configured store;
  std::string mutex;
  Format format = Format::kText;
  ContendOptions contend;
  milliseconds length{5'000};
};
int bench(const BenchCommand& command);

struct TortureCommand {
  Configured store;
  milliseconds length{30'000}, ttl{2'000}, transition{1'000};
  int clients = 4, mutexes = 2;
  std::uint64_t seed = 0;  // 0: any
  Format format = Format::kText;
  std::string picture;             // a file; empty: none
  std::vector<std::string> given;  // the command line
};
int torture(const TortureCommand& command);
// The clients that are tortured are processes of this program: asked first of all.
void contend_if_asked(int argc, char** argv);

int config(const Settings& settings, Format format);

int version(Format format);

}  // namespace simba::cli
