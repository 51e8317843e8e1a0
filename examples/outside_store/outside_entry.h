#pragma once

#include <simba/connect.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "outside_store.h"

// Makes the store known under `outside:NAME?zone=ZONE`: how it is opened, what it tells of itself,
// and what may stand in a file with settings:
//
//   simba:
//     store: outside:orders
//     outside:
//       zone: eu
//       ttl: 5s
namespace outside {

// Stores of one name are one store.
inline std::shared_ptr<simba::Store> open(std::string_view url, const simba::LogSink&) {
  static std::mutex guard;
  static std::map<std::string, std::shared_ptr<OutsideStore>, std::less<>> stores;
  const std::string name(url.substr(0, url.find('?')));
  const std::lock_guard lock(guard);
  std::shared_ptr<OutsideStore>& store = stores[name];
  if (!store) store = std::make_shared<OutsideStore>();
  return store;
}

inline simba::Preparation prepare(std::string_view, simba::Prepare) {
  return {"", "a map needs nothing to be made"};
}

inline simba::Inspection inspect(std::string_view url) {
  const std::size_t at = url.find("zone=");
  std::string_view zone = at == url.npos ? "nowhere" : url.substr(at + 5);
  zone = zone.substr(0, zone.find('&'));
  return {
      {{"server", simba::Finding::Verdict::kOk, "a map of this process, in " + std::string(zone)}}};
}

// It needs no password; one that does names the variable that it takes it from.
inline std::vector<std::string> secrets(std::string_view) { return {"OUTSIDE_PASSWORD"}; }

inline void add_to_registry() {
  simba::StoreEntry entry;
  entry.scheme = "outside";
  entry.open = open;
  entry.prepare = prepare;
  entry.inspect = inspect;
  entry.secrets = secrets;
  entry.properties = {
      {"zone", "eu or us", [](std::string_view value) { return value == "eu" || value == "us"; }},
      {.name = "apikey", .secret = true}};
  simba::register_store(std::move(entry));
}

}  // namespace outside
