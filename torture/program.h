#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "torture/own_servers.h"

// What simba_torture and simba_soak have in common: a store is chosen, attacked, and reported on.
namespace simba::torture {

struct Words {
  std::string store = "sqlite", picture, json;
  std::uint64_t seed = 0;  // 0: not chosen
};

void add_options(CLI::App& app, Words& words);
// Throws CLI::ValidationError where there is no such store.
const OwnStore& chosen(const Words& words);
void publish(const Words& words, const std::string& text, const std::string& picture,
             const std::string& json);

// Parses, runs, and turns what was thrown into an exit code: 2 usage, 4 skipped, 1 anything else.
// `--list` only says which stores there are.
int guarded(CLI::App& app, Words& words, int argc, char** argv, const std::function<int()>& run);

}  // namespace simba::torture
