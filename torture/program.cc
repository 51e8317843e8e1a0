#include "torture/program.h"

#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "testing/servers/server.h"

namespace simba::torture {
namespace {

constexpr int kUsage = 2, kSkipped = 4;

int list() {
  std::istringstream names(own_store_names());
  for (std::string name; names >> name;) std::cout << name << '\n';
  return 0;
}

}  // namespace

void add_options(CLI::App& app, Words& words) {
  app.add_option("--store", words.store, "one of" + own_store_names());
  app.add_option("--seed", words.seed, "of the dice; default: any");
  app.add_option("--picture", words.picture, "an SVG file to write");
  app.add_option("--json", words.json, "a file to write the verdict to, as one object");
}

const OwnStore& chosen(const Words& words) {
  if (const OwnStore* store = own_store(words.store)) return *store;
  throw CLI::ValidationError("--store", "there is no store '" + words.store + "' here; see --help");
}

void publish(const Words& words, const std::string& text, const std::string& picture,
             const std::string& json) {
  std::cout << text;
  if (!words.picture.empty()) std::ofstream(words.picture) << picture;
  if (!words.json.empty()) std::ofstream(words.json) << json;
}

int guarded(CLI::App& app, Words& words, int argc, char** argv, const std::function<int()>& run) {
  bool lists = false;
  app.add_flag("--list", lists, "only says which stores there are, one on each line");
  try {
    app.parse(argc, argv);
    if (lists) return list();
    if (words.seed == 0) words.seed = std::random_device{}() | 1U;
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const servers::Unavailable& reason) {
    std::cout << "skipped: " << reason.what() << '\n';
    return kSkipped;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace simba::torture
