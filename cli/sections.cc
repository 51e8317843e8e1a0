#include "cli/sections.h"

#include <algorithm>

#include "simba/connect.h"

namespace simba::cli {
namespace {

using Names = std::vector<std::string>;

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> sections_of(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  for (const StoreEntry& entry : registered_stores()) {
    if (entry.scheme == scheme && !entry.section.empty()) return {entry.section};
  }
  if (scheme == "mysql" || scheme == "mariadb") return {"mysql", "jdbc"};
  if (scheme == "postgresql") return {"postgres", "jdbc"};
  if (scheme.starts_with("redis")) return {"redis"};
  if (scheme.starts_with("mongodb")) return {"mongodb"};
  return {std::string(scheme)};
}

std::vector<std::string> known_sections() {
  Names all{"jdbc", "mysql", "postgres", "redis", "zookeeper", "mongodb", "sqlite"};
  for (const StoreEntry& entry : registered_stores()) {
    for (std::string& section : sections_of(entry.scheme + ':')) {
      if (!holds(all, section)) all.push_back(std::move(section));
    }
  }
  return all;
}

std::vector<StoreProperty> properties_of(const std::string& section) {
  std::vector<StoreProperty> all;
  for (const StoreEntry& entry : registered_stores()) {
    if (!holds(sections_of(entry.scheme + ':'), section)) continue;
    all.insert(all.end(), entry.properties.begin(), entry.properties.end());
  }
  return all;
}

}  // namespace simba::cli
