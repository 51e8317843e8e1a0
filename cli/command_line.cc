#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/guardian.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/output.h"
#include "cli/secrets.h"
#include "cli/servers.h"
#include "cli/signals.h"
#include "cli/tool.h"
#include "cli/usage.h"
#include "simba/error.h"

namespace simba::cli {
namespace {

using Words = std::vector<std::string>;

// A descriptor that is closed would be given to the next file that is opened, and then to the
// program.
void open_standard_streams() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) >= 0) continue;
    if (open("/dev/null", standard == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) return;
  }
}

// What other tools call it.
constexpr std::pair<const char*, const char*> kElsewhere[] = {
    {"check", "doctor"},     {"exec", "run"},     {"info", "show"},      {"list", "ls"},
    {"lock", "run"},         {"status", "show"},  {"unlock", "release"}, {"--nonblock", "--wait"},
    {"--timeout", "--wait"}, {"--url", "--store"}};

std::string did_you_mean(const std::string& word, const Words& known) {
  for (const auto& [theirs, ours] : kElsewhere) {
    const bool is_ours = std::find(known.begin(), known.end(), ours) != known.end();
    if (word == theirs && is_ours) return suggestion(ours, known);
  }
  return suggestion(word, known);
}

// Without its value, which may be a secret.
std::string name_of(const std::string& option) { return option.substr(0, option.find('=')); }

// `simba --store URL ls`.
bool is_option_of_some(const std::string& name) {
  return std::any_of(commands().begin(), commands().end(), [&](const Command& command) {
    CLI::App app;
    Typed typed;
    command.add(app, typed);
    return app.get_option_no_throw(name) != nullptr;
  });
}

const Command& find_command(const std::string& word) {
  const bool is_option = word.starts_with('-');
  const std::string name = is_option ? name_of(word) : without_password(word);
  Words known;
  for (const Command& command : commands()) {
    if (name == command.name) return command;
    known.emplace_back(command.name);
  }
  if (is_option && is_option_of_some(name)) {
    throw UsageError("put '" + name + "' after the command, as in: simba ls " + name);
  }
  throw UsageError("there is no " + std::string(is_option ? "option '" : "command '") + name + "'" +
                   did_you_mean(name, known) + " simba --help");
}

// --- the command line ----------------------------------------------------------------------------

[[noreturn]] void refuse_option(const CLI::App& app, const Command& command,
                                const std::string& word) {
  Words known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::string name = name_of(word);
  throw UsageError("'" + std::string(command.name) + "' has no option '" + name + "'" +
                   did_you_mean(name, known) + " simba " + command.name + " --help");
}

// `simba run MUTEX PROGRAM` is not taken: an option of the program could be taken for one of ours.
[[noreturn]] void refuse_program(const Words& words, const Typed& typed) {
  const auto mutex = std::find(words.begin(), words.end(), typed.words[0]);
  const auto program = std::find(mutex + 1, words.end(), typed.words[1]);
  std::string line = "simba";
  for (auto word = words.begin(); word != words.end(); ++word) {
    line += (word == program ? " -- " : " ") + without_password(*word);
  }
  throw UsageError("put -- before the program: " + line);
}

[[noreturn]] void refuse_value(const Command& command, const std::string& trouble) {
  const bool is_missing = trouble.find("missing") != trouble.npos;
  throw UsageError(trouble.substr(0, trouble.find(':')) +
                   (is_missing ? " has no value" : " is given more than once") + "; see simba " +
                   command.name + " --help");
}

void parse_options(const Command& command, const Words& given, Typed& typed) {
  Words words(given.begin() + 1, std::find(given.begin(), given.end(), "--"));
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", typed.help);
  app.add_option("words", typed.words);
  command.add(app, typed);
  for (const std::string& word : words) {  // CLI11 would take the next word for the value
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && word == name + '=') refuse_value(command, name + ": missing");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch& error) {
    refuse_value(command, error.what());
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see simba " + command.name + " --help");
  }
  const Words unknown = app.remaining();
  const bool names_program = command.most_words == kProgram && typed.words.size() > 1;
  const bool has_dashes = std::find(given.begin(), given.end(), "--") != given.end();
  if (names_program && !has_dashes) refuse_program(given, typed);
  if (!unknown.empty()) refuse_option(app, command, unknown.front());
  if (names_program) {
    throw UsageError("'" + without_password(typed.words[1]) +
                     "' is one word too many before --; see simba " + command.name + " --help");
  }
}

Typed parse(const Command& command, const Words& words) {
  Typed typed;
  typed.given = words;
  parse_options(command, words, typed);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) typed.program.assign(dashes + 1, words.end());
  if (typed.help || command.most_words == kProgram) return typed;
  typed.words.insert(typed.words.end(), typed.program.begin(), typed.program.end());
  if (typed.words.size() > command.most_words) {
    throw UsageError("'" + without_password(typed.words[command.most_words]) +
                     "' is one word too many; see simba " + command.name + " --help");
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
  if (words[0] == "help" && words.size() > 1 && words[1] == "--man") {
    const std::string name = words.size() > 2 ? words[2] : "";
    return show_help(manual(name, name.empty() ? help::kSimba : find_command(name).help).c_str());
  }
  if (words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    const bool names_command = words.size() > 1 && words[1] != "help";
    return show_help(names_command ? find_command(words[1]).help : help::kSimba);
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

int run_tool(int argc, char** argv) {
  open_standard_streams();
  outlive_full_files();
  settle_in();
  guard_if_asked(argc, argv);
  contend_if_asked(argc, argv);
  return guarded_act({argv + 1, argv + argc});
}

}  // namespace simba::cli
