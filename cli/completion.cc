#include <CLI/CLI.hpp>

#include "cli/command_table.h"
#include "cli/output.h"
#include "cli/usage.h"

namespace simba::cli {
namespace {

// The options of a command, as the parser knows them.
std::vector<std::string> options_of(const Command& command) {
  CLI::App app;
  app.set_help_flag();
  Typed typed;
  command.add(app, typed);
  std::vector<std::string> all{"--help"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
  }
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string names() {
  std::vector<std::string> all{"help"};
  for (const Command& command : commands()) all.emplace_back(command.name);
  return joined(all);
}

// What may follow an option, or stand as the word of a command; of others it is anybody's guess.
constexpr std::pair<const char*, const char*> kValues[] = {{"--restart", "on-failure always never"},
                                                           {"completion", "bash zsh fish"}};

// For fish.
std::string what_follows(const std::string& word) {
  if (word == "--config" || word == "--picture") return " -r -F";  // files
  for (const auto& [before, values] : kValues) {
    if (word == before) return " -x -a '" + std::string(values) + "'";
  }
  return "";
}

// As its help begins: "simba show [options] MUTEX".
bool takes_mutex(const Command& command) {
  const std::string_view help = command.help;
  const std::string_view first = help.substr(0, help.find('\n'));
  return first.find("MUTEX") != first.npos || first.find("PREFIX") != first.npos;
}

// Asked for when a word is completed; a store that does not answer is not waited for.
constexpr const char* kMutexes = "timeout 2 simba ls --all --names 2> /dev/null";

// Bash breaks words at : = and @ too, which names may have. What has no blank between is put
// together again, up to the word in question; of that, only what bash names, $2, is its to replace.
constexpr const char* kWholeWords =
    "  local part typed=() line=$COMP_LINE\n"
    "  for part in \"${COMP_WORDS[@]:0:COMP_CWORD+1}\"; do\n"
    "    if [[ ${typed[*]} && $line == \"$part\"* && ($part || ! $line) ]]; then\n"
    "      typed[-1]+=$part\n"
    "    else\n"
    "      typed+=(\"$part\")\n"
    "    fi\n"
    "    line=${line#*\"$part\"}\n"
    "  done\n"
    "  local at=$((${#typed[@]} - 1)) word=${typed[-1]}\n"
    "  local before=${word%\"$2\"}\n";

// After -- comes a program: whatever the shell knows of programs and files. Names of mutexes are
// anybody's: they are compared, never expanded.
std::string for_bash() {
  std::string text = "_simba() {\n";
  text += kWholeWords;
  text +=
      "  local words='' mutexes='' name i\n"
      "  for ((i = 1; i < at; i++)); do\n"
      "    if [[ ${typed[i]} == -- ]]; then\n"
      "      compopt -o default\n"
      "      ((i + 1 < at)) || mapfile -t COMPREPLY < <(compgen -c -- \"$2\")\n"
      "      return\n"
      "    fi\n"
      "  done\n"
      "  case $at:${typed[at-1]}:${typed[1]} in\n"
      "    1:*) words='" +
      names() + "' ;;\n    *:--config:* | *:--picture:*) compopt -o default && return ;;\n";
  for (const auto& [before, values] : kValues) {
    text += "    *:" + std::string(before) + ":*) words='" + values + "' ;;\n";
  }
  for (const Command& command : commands()) {
    text += "    *:*:" + std::string(command.name) + ") words='" + joined(options_of(command)) +
            "'" + (takes_mutex(command) ? " mutexes=too" : "") + " ;;\n";
  }
  return text + "    *:*:help) words='" + names() +
         "' ;;\n"
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  [[ $mutexes && $word != -* ]] || return\n"
         "  while IFS= read -r name; do\n"
         "    [[ $name != \"$word\"* ]] || COMPREPLY+=(\"$(printf %q \"${name#\"$before\"}\")\")\n"
         "  done < <(" +
         kMutexes +
         ")\n"
         "}\n"
         "complete -F _simba simba\n";
}

std::string for_zsh() {
  std::string text =
      "#compdef simba\n"
      "local dashes=${words[(i)--]}\n"
      "if (( dashes < CURRENT )); then\n"
      "  shift $dashes words\n"
      "  (( CURRENT -= dashes ))\n"
      "  _normal\n"
      "  return\n"
      "fi\n"
      "case $CURRENT:${words[CURRENT-1]}:${words[2]} in\n"
      "  2:*) compadd -- " +
      names() + " ;;\n  *:(--config|--picture):*) _files ;;\n";
  for (const auto& [before, values] : kValues) {
    text += "  *:" + std::string(before) + ":*) compadd -- " + values + " ;;\n";
  }
  for (const Command& command : commands()) {
    text += "  *:*:" + std::string(command.name) + ")\n    compadd -- " +
            joined(options_of(command)) + "\n";
    if (takes_mutex(command)) text += "    compadd -- ${(f)\"$(" + std::string(kMutexes) + ")\"}\n";
    text += "    ;;\n";
  }
  return text + "  *:*:help) compadd -- " + names() + " ;;\nesac\n";
}

std::string for_fish() {
  const std::string when = "complete -c simba -n 'not __simba_at_program; and ";
  std::string text =
      "function __simba_at_program\n"
      "  contains -- -- (commandline -opc)\n"
      "end\n"
      "function __simba_program\n"
      "  set -l words (commandline -opc)\n"
      "  set -l rest $words[(math (contains -i -- -- $words) + 1)..]\n"
      "  complete -C (string join ' ' -- (string escape -- $rest) (commandline -ct))\n"
      "end\n"
      "complete -c simba -f\n"  // no files, but where they are meant
      "complete -c simba -n __simba_at_program -a '(__simba_program)'\n" +
      when + "__fish_use_subcommand' -a '" + names() + "'\n" + when +
      "__fish_seen_subcommand_from help' -a '" + names() + "'\n";
  for (const Command& command : commands()) {
    const std::string of = when + "__fish_seen_subcommand_from " + command.name + "' ";
    for (const std::string& option : options_of(command)) {
      text += of + "-l " + option.substr(2) + what_follows(option) + '\n';
    }
    if (takes_mutex(command)) text += of + "-a '(" + kMutexes + ")'\n";
    if (const std::string words = what_follows(command.name); !words.empty()) {
      text += of + words.substr(words.find("-a")) + '\n';
    }
  }
  return text;
}

}  // namespace

std::string completion(const std::string& shell) {
  if (shell == "bash") return for_bash();
  if (shell == "zsh") return for_zsh();
  if (shell == "fish") return for_fish();
  throw UsageError("there is no completion for '" + shell +
                   "'; there is one for bash, zsh and fish");
}

}  // namespace simba::cli
