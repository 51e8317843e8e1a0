#include "cli/command_table.h"

#include <algorithm>
#include <charconv>

#include "cli/chosen_store.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/servers.h"
#include "cli/settings.h"
#include "cli/usage.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

Settings settings_of(const Typed& typed) {
  return Settings(
      {typed.config, typed.store, typed.id, typed.ttl, typed.transition, typed.kill_after});
}

const Configured& checked_store(const Typed& typed, const Settings& settings) {
  const Configured& store = settings.store();
  leave_to_servers_program(store.value, typed.given);
  if (const std::string file = settings.exposed_by(); !file.empty()) {
    say("warning: everybody on this host can read the password in " + file + ": use chmod 600");
  }
  check_scheme(store);
  need_servers_program(store.value);
  check_url(store);
  return store;
}

Configured store_of(const Typed& typed) {
  const Settings settings = settings_of(typed);
  return checked_store(typed, settings);
}

Words secrets_of(const std::string& url) {
  const std::string scheme = url.substr(0, url.find(':'));
  for (const StoreEntry& entry : registered_stores()) {
    if (entry.scheme == scheme && entry.secrets) return entry.secrets(url);
  }
  return {};
}

void add_store(CLI::App& app, Typed& typed) {
  app.add_option("--store", typed.store);
  app.add_option("--config", typed.config);
}

void add_settings(CLI::App& app, Typed& typed) {
  add_store(app, typed);
  app.add_option("--id", typed.id);
  app.add_option("--ttl", typed.ttl);
  app.add_option("--transition", typed.transition);
  app.add_option("--kill-after", typed.kill_after);
}

void add_duty(CLI::App& app, Typed& typed) {
  add_settings(app, typed);
  app.add_flag("-q,--quiet", typed.quiet);
}

void fill_duty(const Typed& typed, const std::string& command, Duty& duty) {
  const std::string mutex = typed.words.empty() ? "MUTEX" : typed.words[0];
  const char* missing = typed.words.empty()     ? "which mutex?"
                        : typed.program.empty() ? "which program?"
                                                : nullptr;
  if (missing != nullptr) {
    throw UsageError(std::string(missing) + " Type 'simba " + command + ' ' + mutex +
                     " -- PROGRAM'; see simba " + command + " --help");
  }
  duty.mutex = typed.words[0];
  duty.program = typed.program;
  const Settings settings = settings_of(typed);
  duty.store = checked_store(typed, settings);
  settings.pass_on_store();
  duty.secrets = secrets_of(duty.store.value);
  const Configured id = settings.id();
  duty.id = id.value;
  duty.id_origin = id.origin;
  duty.quiet = typed.quiet;
  duty.contend = settings.contend();
  duty.kill_after = settings.kill_after();
}

void add_run(CLI::App& app, Typed& typed) {
  add_duty(app, typed);
  app.add_option("--wait", typed.wait);
  app.add_option("--max-hold", typed.max_hold);
}

int act_run(const Typed& typed) {
  RunCommand command;
  fill_duty(typed, "run", command);
  if (typed.wait) command.wait = parse_duration("--wait", *typed.wait);
  if (typed.max_hold) command.max_hold = parse_duration("--max-hold", *typed.max_hold);
  return run(command);
}

void add_lead(CLI::App& app, Typed& typed) {
  add_duty(app, typed);
  app.add_option("--restart", typed.restart);
  app.add_option("--delay", typed.delay);
  app.add_option("--hand-over-after", typed.hand_over_after);
}

Restart parse_restart(const std::string& text) {
  if (text == "on-failure") return Restart::kOnFailure;
  if (text == "always") return Restart::kAlways;
  if (text == "never") return Restart::kNever;
  throw UsageError("--restart is '" + text + "'; it can be on-failure, always or never");
}

// A whole number from `least` on.
std::uint64_t parse_number(const char* option, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (whole && number >= least && number <= most) return number;
  throw UsageError(std::string(option) + " is '" + text + "'; it can be a number from " +
                   std::to_string(least) + " to " + std::to_string(most));
}

int act_lead(const Typed& typed) {
  LeadCommand command;
  fill_duty(typed, "lead", command);
  if (typed.restart) command.restart = parse_restart(*typed.restart);
  if (typed.delay) command.delay = parse_duration("--delay", *typed.delay);
  if (typed.hand_over_after) {
    command.hand_over_after = static_cast<unsigned>(
        parse_number("--hand-over-after", *typed.hand_over_after, 0, 1'000'000));
  }
  return lead(command);
}

void add_schedule(CLI::App& app, Typed& typed) {
  add_duty(app, typed);
  app.add_option("--every", typed.every);
  app.add_option("--after", typed.after);
  app.add_option("--cron", typed.cron);
  app.add_option("--first-after", typed.first_after);
}

milliseconds parse_period(const char* option, const std::string& text) {
  const milliseconds period = parse_duration(option, text);
  if (period > milliseconds{0}) return period;
  throw UsageError(std::string(option) + " is '" + text + "'; it has to be longer than 0");
}

int act_schedule(const Typed& typed) {
  ScheduleCommand command;
  fill_duty(typed, "schedule", command);
  const int given = (typed.every ? 1 : 0) + (typed.after ? 1 : 0) + (typed.cron ? 1 : 0);
  if (given != 1) {
    throw UsageError(std::string(given == 0 ? "when? Type" : "when? Type only one of") +
                     " --every 5m, --after 5m or --cron '*/5 * * * *'; see simba schedule "
                     "--help");
  }
  if (typed.first_after && typed.cron) {
    throw UsageError("--first-after has no meaning with --cron: that names the times itself");
  }
  const milliseconds delay =
      typed.first_after ? parse_duration("--first-after", *typed.first_after) : milliseconds{0};
  command.cron = typed.cron;
  if (typed.every) {
    command.period = ScheduleConfig::rate(delay, parse_period("--every", *typed.every));
  }
  if (typed.after) {
    command.period = ScheduleConfig::delay(delay, parse_period("--after", *typed.after));
  }
  return schedule(command);
}

void add_show(CLI::App& app, Typed& typed) {
  add_store(app, typed);
  app.add_flag("--json", typed.json);
}

void add_ls(CLI::App& app, Typed& typed) {
  add_show(app, typed);
  app.add_flag("-a,--all", typed.all);
  app.add_flag("--names", typed.names);
}

void add_version(CLI::App& app, Typed& typed) { app.add_flag("--json", typed.json); }

int act_ls(const Typed& typed) {
  if (typed.names && typed.json) {
    throw UsageError("--names has no meaning with --json: that names all there is to know");
  }
  const std::string prefix = typed.words.empty() ? "" : typed.words[0];
  return ls({store_of(typed), prefix, typed.format(), typed.all, typed.names});
}

int act_show(const Typed& typed) {
  if (typed.words.empty()) {
    throw UsageError("which mutex? Type 'simba show MUTEX'; see simba show --help");
  }
  return show({store_of(typed), typed.words[0], typed.format()});
}

void add_release(CLI::App& app, Typed& typed) {
  add_show(app, typed);
  app.add_flag("--now", typed.now);
  app.add_option("--token", typed.token);
}

int act_release(const Typed& typed) {
  if (typed.words.empty()) {
    throw UsageError("which mutex? Type 'simba release MUTEX'; see simba release --help");
  }
  ReleaseCommand command{store_of(typed), typed.words[0], typed.format(), {}, {}};
  if (typed.now) command.how = Eviction::kFreeNow;
  if (typed.token) {
    command.token = parse_number("--token", *typed.token, 1, ~std::uint64_t{0});
  }
  return release(command);
}

int act_watch(const Typed& typed) {
  if (typed.words.empty()) {
    throw UsageError("which mutexes? Type 'simba watch MUTEX...'; see simba watch --help");
  }
  return watch({store_of(typed), typed.words, typed.format()});
}

void add_init(CLI::App& app, Typed& typed) {
  add_show(app, typed);
  app.add_flag("--print", typed.print);
}

int act_init(const Typed& typed) {
  return init({store_of(typed), typed.format(), typed.print ? Prepare::kTell : Prepare::kNow});
}

void add_doctor(CLI::App& app, Typed& typed) {
  add_show(app, typed);
  app.add_option("--ttl", typed.ttl);
  app.add_option("--transition", typed.transition);
}

int act_doctor(const Typed& typed) {
  const Settings settings = settings_of(typed);
  return doctor({checked_store(typed, settings), typed.format(), settings.unchecked_contend(),
                 settings.lease_origins()});
}

void add_bench(CLI::App& app, Typed& typed) {
  add_doctor(app, typed);
  app.add_option("--for", typed.length);
}

int act_bench(const Typed& typed) {
  const Settings settings = settings_of(typed);
  const BenchCommand command{
      checked_store(typed, settings), typed.words.empty() ? "simba-bench" : typed.words[0],
      typed.format(), settings.contend(), parse_period("--for", typed.length.value_or("5s"))};
  return bench(command);
}

void add_torture(CLI::App& app, Typed& typed) {
  add_show(app, typed);
  app.add_option("--for", typed.length);
  app.add_option("--clients", typed.clients);
  app.add_option("--mutexes", typed.mutexes);
  app.add_option("--ttl", typed.ttl);
  app.add_option("--transition", typed.transition);
  app.add_option("--seed", typed.seed);
  app.add_option("--picture", typed.picture);
}

int act_torture(const Typed& typed) {
  TortureCommand command;
  command.store = store_of(typed);
  command.format = typed.format();
  command.picture = typed.picture.value_or("");
  command.given = typed.given;
  if (typed.length) command.length = parse_duration("--for", *typed.length);
  if (typed.ttl) command.ttl = parse_duration("--ttl", *typed.ttl);
  if (typed.transition) command.transition = parse_duration("--transition", *typed.transition);
  if (typed.clients) {
    command.clients = static_cast<int>(parse_number("--clients", *typed.clients, 2, 64));
  }
  if (typed.mutexes) {
    command.mutexes = static_cast<int>(parse_number("--mutexes", *typed.mutexes, 1, 64));
  }
  if (typed.seed) command.seed = parse_number("--seed", *typed.seed, 1, ~std::uint64_t{0});
  return torture(command);
}

void add_config(CLI::App& app, Typed& typed) {
  add_settings(app, typed);
  app.add_flag("--json", typed.json);
}

int act_config(const Typed& typed) {
  const Settings settings = settings_of(typed);
  static_cast<void>(checked_store(typed, settings));  // what another command would say of it
  return config(settings, typed.format());
}

void add_nothing(CLI::App&, Typed&) {}

int act_completion(const Typed& typed) {
  if (typed.words.empty()) {
    throw UsageError("for which shell? Type 'simba completion bash', zsh or fish");
  }
  return print(completion(typed.words[0])) ? exit_code::kOk : exit_code::kUnavailable;
}

int act_version(const Typed& typed) { return version(typed.format()); }

constexpr Command kCommands[] = {
    {"run", help::kRun, kProgram, add_run, act_run},
    {"lead", help::kLead, kProgram, add_lead, act_lead},
    {"schedule", help::kSchedule, kProgram, add_schedule, act_schedule},
    {"ls", help::kLs, 1, add_ls, act_ls},
    {"show", help::kShow, 1, add_show, act_show},
    {"watch", help::kWatch, kManyWords, add_show, act_watch},
    {"release", help::kRelease, 1, add_release, act_release},
    {"init", help::kInit, 0, add_init, act_init},
    {"doctor", help::kDoctor, 0, add_doctor, act_doctor},
    {"bench", help::kBench, 1, add_bench, act_bench},
    {"torture", help::kTorture, 0, add_torture, act_torture},
    {"config", help::kConfig, 0, add_config, act_config},
    {"completion", help::kCompletion, 1, add_nothing, act_completion},
    {"version", help::kVersion, 0, add_version, act_version},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace simba::cli
