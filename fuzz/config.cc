// The file with settings.
#include <string>

#include "cli/config_file.h"
#include "cli/sections.h"
#include "cli/usage.h"
#include "fuzz/target.h"
#include "simba/connect.h"

// In place of the registry, which would bring every store: one that has a section with a property.
std::vector<simba::StoreEntry> simba::registered_stores() {
  StoreEntry entry;
  entry.scheme = "outside";
  entry.properties = {{"zone", "eu or us", [](std::string_view value) { return value == "eu"; }}};
  return {entry};
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  simba::fuzz::accepts<simba::cli::UsageError>([&] {
    const simba::cli::ConfigFile file(text, "simba.yaml");
    for (const char* key : {"store", "ttl", "transition", "enabled"}) {
      const auto found = file.get(key);
      if (found)
        simba::fuzz::require(found->origin.starts_with("simba.yaml"),
                             "a value says where it stands");
    }
    if (const auto section = file.first_section()) file.get(section->value, "ttl");
  });
  simba::cli::sections_of(text);
  return 0;
}
