#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/guardian.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/servers.h"
#include "cli/usage.h"
#include "simba/error.h"

namespace simba::cli {
namespace {

using Words = std::vector<std::string>;
using Text = std::optional<std::string>;

// What CLI11 fills in; values as text, so that errors are ours.
struct Typed {
  Words given;    // everything after the program
  Words words;    // before --
  Words program;  // after it
  Text store, wait, ttl, transition, kill_after, max_hold, id, token, restart, delay,
      hand_over_after, every, after, cron, initial_delay;
  bool quiet = false, json = false, all = false, now = false, help = false;

  Format format() const { return json ? Format::kJson : Format::kText; }
};

// A descriptor that is closed would be given to the next file that is opened, and then to the
// program.
void open_standard_streams() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) >= 0) continue;
    if (open("/dev/null", standard == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) return;
  }
}

bool has_password(const std::string& url) {
  const std::size_t user = url.find("//");
  if (user == url.npos) return false;
  const std::size_t at = url.find('@', user);
  return at != url.npos && url.find(':', user) < at;
}

std::string given_store_url(const Typed& typed) {
  if (typed.store) return *typed.store;
  const char* set = std::getenv("SIMBA_STORE");  // NOLINT(concurrency-mt-unsafe): no thread yet
  return set != nullptr && *set != '\0' ? set : "sqlite:";
}

std::string store_url(const Typed& typed) {
  std::string url = given_store_url(typed);
  leave_to_servers_program(url, typed.given);
  if (typed.store && has_password(url)) {
    say("warning: everybody on this host can read the password in --store: use SIMBA_STORE");
  }
  return url;
}

// --- the commands --------------------------------------------------------------------------------

void add_duty(CLI::App& app, Typed& typed) {
  app.add_option("--store", typed.store);
  app.add_flag("-q,--quiet", typed.quiet);
  app.add_option("--id", typed.id);
  app.add_option("--ttl", typed.ttl);
  app.add_option("--transition", typed.transition);
  app.add_option("--kill-after", typed.kill_after);
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
  duty.store = store_url(typed);
  duty.id = typed.id.value_or("");
  duty.quiet = typed.quiet;
  if (typed.ttl) duty.contend.ttl = parse_duration("--ttl", *typed.ttl);
  if (typed.transition) duty.contend.transition = parse_duration("--transition", *typed.transition);
  if (typed.kill_after) duty.kill_after = parse_duration("--kill-after", *typed.kill_after);
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
  app.add_option("--initial-delay", typed.initial_delay);
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
    throw UsageError(std::string(given == 0 ? "when?" : "when? One of them:") +
                     " Type --every 5m, --after 5m or --cron '*/5 * * * *'; see simba schedule "
                     "--help");
  }
  if (typed.initial_delay && typed.cron) {
    throw UsageError("--initial-delay has no meaning with --cron: that names the times itself");
  }
  const milliseconds delay = typed.initial_delay
                                 ? parse_duration("--initial-delay", *typed.initial_delay)
                                 : milliseconds{0};
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
  app.add_option("--store", typed.store);
  app.add_flag("--json", typed.json);
}

void add_ls(CLI::App& app, Typed& typed) {
  add_show(app, typed);
  app.add_flag("-a,--all", typed.all);
}

void add_version(CLI::App& app, Typed& typed) { app.add_flag("--json", typed.json); }

int act_ls(const Typed& typed) {
  const std::string prefix = typed.words.empty() ? "" : typed.words[0];
  return ls({store_url(typed), prefix, typed.format(), typed.all});
}

int act_show(const Typed& typed) {
  if (typed.words.empty()) {
    throw UsageError("which mutex? Type 'simba show MUTEX'; see simba show --help");
  }
  return show({store_url(typed), typed.words[0], typed.format()});
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
  ReleaseCommand command{store_url(typed), typed.words[0], typed.format(), {}, {}};
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
  return watch({store_url(typed), typed.words, typed.format()});
}

int act_version(const Typed& typed) { return version(typed.format()); }

struct Command {
  const char* name;
  const char* help;
  std::size_t most_words;
  void (*add)(CLI::App&, Typed&);
  int (*act)(const Typed&);
};

constexpr std::size_t kManyWords = std::string::npos - 1;

constexpr Command kCommands[] = {
    {"run", help::kRun, std::string::npos, add_run, act_run},  // says itself what is missing
    {"lead", help::kLead, std::string::npos, add_lead, act_lead},
    {"schedule", help::kSchedule, std::string::npos, add_schedule, act_schedule},
    {"ls", help::kLs, 1, add_ls, act_ls},
    {"show", help::kShow, 1, add_show, act_show},
    {"watch", help::kWatch, kManyWords, add_show, act_watch},
    {"release", help::kRelease, 1, add_release, act_release},
    {"version", help::kVersion, 0, add_version, act_version},
};

const Command& find_command(const std::string& name) {
  Words known;
  for (const Command& command : kCommands) {
    if (name == command.name) return command;
    known.emplace_back(command.name);
  }
  throw UsageError("there is no " + std::string(name.starts_with('-') ? "option '" : "command '") +
                   name + "'" + suggestion(name, known) + " simba --help");
}

// --- the command line ----------------------------------------------------------------------------

[[noreturn]] void refuse_option(const CLI::App& app, const Command& command,
                                const std::string& word) {
  Words known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  throw UsageError("'" + std::string(command.name) + "' has no option '" + word + "'" +
                   suggestion(word.substr(0, word.find('=')), known) + " simba " + command.name +
                   " --help");
}

// `simba run MUTEX PROGRAM` is not taken: an option of the program could be taken for one of ours.
[[noreturn]] void refuse_program(const Command& command, const Words& words, const Typed& typed) {
  const auto mutex = std::find(words.begin(), words.end(), typed.words[0]);
  std::string program;
  for (auto word = std::find(mutex + 1, words.end(), typed.words[1]); word != words.end(); ++word) {
    if (*word != "--") program += ' ' + *word;
  }
  throw UsageError("put -- before the program: simba " + std::string(command.name) + ' ' +
                   typed.words[0] + " --" + program);
}

void parse_options(const Command& command, const Words& given, Typed& typed) {
  Words words(given.begin() + 1, std::find(given.begin(), given.end(), "--"));
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", typed.help);
  app.add_option("words", typed.words);
  command.add(app, typed);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see simba " + command.name + " --help");
  }
  const Words unknown = app.remaining();
  const bool names_program = command.most_words == std::string::npos && typed.words.size() > 1;
  const bool has_dashes = std::find(given.begin(), given.end(), "--") != given.end();
  if (names_program && !has_dashes) refuse_program(command, given, typed);
  if (!unknown.empty()) refuse_option(app, command, unknown.front());
  if (names_program) refuse_program(command, given, typed);
}

Typed parse(const Command& command, const Words& words) {
  Typed typed;
  typed.given = words;
  parse_options(command, words, typed);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) typed.program.assign(dashes + 1, words.end());
  if (typed.help || command.most_words == std::string::npos) return typed;
  typed.words.insert(typed.words.end(), typed.program.begin(), typed.program.end());
  if (typed.words.size() > command.most_words) {
    throw UsageError("'" + typed.words[command.most_words] + "' is one word too many; see simba " +
                     command.name + " --help");
  }
  return typed;
}

int act(Words words) {
  const auto show_help = [](const char* text) {
    return print(text) ? exit_code::kOk : exit_code::kUnavailable;
  };
  if (words.empty()) {
    const std::string_view text = help::kSimba;
    static_cast<void>(write(STDERR_FILENO, text.data(), text.size()));
    return exit_code::kUsage;
  }
  if (words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    return show_help(words.size() == 1 ? help::kSimba : find_command(words[1]).help);
  }
  if (words[0] == "--version") words[0] = "version";
  const Command& command = find_command(words[0]);
  const Typed typed = parse(command, words);
  return typed.help ? show_help(command.help) : command.act(typed);
}

int guarded_act(const Words& words) {
  try {
    return act(words);
  } catch (const UsageError& error) {
    say(error.what());
    return exit_code::kUsage;
  } catch (const Error& error) {
    say(error.what());
    const bool mistyped = error.errc() == Errc::kMisconfigured || error.errc() == Errc::kMisuse;
    return mistyped ? exit_code::kUsage : exit_code::kUnavailable;
  } catch (const std::exception& error) {
    say(error.what());
    return exit_code::kUnguarded;
  }
}

}  // namespace
}  // namespace simba::cli

int main(int argc, char** argv) {
  simba::cli::open_standard_streams();
  simba::cli::guard_if_asked(argc, argv);
  return simba::cli::guarded_act({argv + 1, argv + argc});
}
