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

// After -- comes a program: whatever the shell knows of programs and files.
std::string for_bash() {
  std::string text =
      "_simba() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
      "      compopt -o default\n"
      "      ((i + 1 < COMP_CWORD)) || mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
      "      return\n"
      "    fi\n"
      "  done\n"
      "  local words=''\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    words='" +
      names() + "'\n  else\n    case ${COMP_WORDS[1]} in\n";
  for (const Command& command : commands()) {
    text +=
        "      " + std::string(command.name) + ") words='" + joined(options_of(command)) + "' ;;\n";
  }
  text += "      help) words='" + names() +
          "' ;;\n"
          "    esac\n"
          "  fi\n"
          "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "}\n"
          "complete -F _simba simba\n";
  return text;
}

std::string for_zsh() {
  std::string text =
      "#compdef simba\n"
      "local dashes=${words[(i)--]}\n"
      "if (( dashes < CURRENT )); then\n"
      "  shift $dashes words\n"
      "  (( CURRENT -= dashes ))\n"
      "  _normal\n"
      "elif (( CURRENT == 2 )); then\n"
      "  compadd -- " +
      names() + "\nelse\n  case ${words[2]} in\n";
  for (const Command& command : commands()) {
    text += "    " + std::string(command.name) + ") compadd -- " + joined(options_of(command)) +
            " ;;\n";
  }
  return text + "    help) compadd -- " + names() + " ;;\n  esac\nfi\n";
}

std::string for_fish() {
  const std::string when = "complete -c simba -f -n 'not __simba_at_program; and ";
  std::string text =
      "function __simba_at_program\n"
      "  contains -- -- (commandline -opc)\n"
      "end\n"
      "function __simba_program\n"
      "  set -l words (commandline -opc)\n"
      "  set -l rest $words[(math (contains -i -- -- $words) + 1)..]\n"
      "  complete -C (string join ' ' -- (string escape -- $rest) (commandline -ct))\n"
      "end\n"
      "complete -c simba -f -n __simba_at_program -a '(__simba_program)'\n" +
      when + "__fish_use_subcommand' -a '" + names() + "'\n" + when +
      "__fish_seen_subcommand_from help' -a '" + names() + "'\n";
  for (const Command& command : commands()) {
    for (const std::string& option : options_of(command)) {
      text +=
          when + "__fish_seen_subcommand_from " + command.name + "' -l " + option.substr(2) + "\n";
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
