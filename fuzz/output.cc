// What the tool prints of names that come from a store: JSON that can be read, text that plays no
// tricks.
#include <nlohmann/json.hpp>

#include <string>

#include "cli/output.h"
#include "cli/owner_view.h"
#include "core/utf8.h"
#include "fuzz/answer.h"
#include "fuzz/target.h"

using simba::fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const simba::Observation seen = simba::fuzz::observation(input);
  const std::string mutex = input.text(100);
  const simba::cli::OwnerView view(mutex, seen);
  const std::string line = view.json();
  require(line.find('\n') == line.npos, "an object is one line");
  const auto object = nlohmann::json::parse(line);
  if (simba::core::is_valid_utf8(mutex)) require(object.at("mutex") == mutex, "JSON keeps a name");
  require(object.at("token") == view.token, "JSON keeps a token");
  const std::string shown = simba::cli::printable(mutex);
  require(!simba::core::has_control_characters(shown), "a terminal is not played tricks with");
  simba::cli::width_of(mutex);
  return 0;
}
