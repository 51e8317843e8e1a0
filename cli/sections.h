#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simba/store_entry.h"

// The sections of a file with settings: each is about one kind of store.
namespace simba::cli {

// Those about stores of this URL, the narrowest first: "mysql", then "jdbc".
std::vector<std::string> sections_of(std::string_view url);

// All that may stand in a file, also of stores that were registered.
std::vector<std::string> known_sections();

// What a store brings of its own for this section.
std::vector<StoreProperty> properties_of(const std::string& section);

}  // namespace simba::cli
