#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"

// The commands by name: what may be typed after each, and what it then does.
namespace simba::cli {

using Words = std::vector<std::string>;
using Text = std::optional<std::string>;

// What CLI11 fills in; values as text, so that errors are ours.
struct Typed {
  Words given;    // everything after the program
  Words words;    // before --
  Words program;  // after it
  Text config, store, wait, ttl, transition, kill_after, max_hold, id, token, restart, delay,
      hand_over_after, every, after, cron, first_after, length, clients, mutexes, seed, picture;
  bool quiet = false, json = false, all = false, names = false, now = false, print = false,
       help = false;

  Format format() const { return json ? Format::kJson : Format::kText; }
};

struct Command {
  const char* name;
  const char* help;
  std::size_t most_words;  // kProgram: the rest is a program, and the command says what is missing
  void (*add)(CLI::App&, Typed&);
  int (*act)(const Typed&);
};

inline constexpr std::size_t kProgram = std::string::npos;
inline constexpr std::size_t kManyWords = kProgram - 1;

std::span<const Command> commands();

// A script that completes what is typed; for bash, zsh or fish.
std::string completion(const std::string& shell);

}  // namespace simba::cli
