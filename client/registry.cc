#include "client/registry.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/coded.h"
#include "simba/connect.h"

namespace simba::client {
namespace {

class Registry {
 public:
  Registry() {
    for (StoreEntry& entry : built_in_stores()) add(std::move(entry));
  }

  void add(StoreEntry entry) {
    const std::lock_guard lock(guard_);
    const std::string scheme = entry.scheme;
    if (!entries_.emplace(scheme, std::move(entry)).second) {
      throw Error(Errc::kMisuse, "the scheme '" + scheme + "' is registered already");
    }
  }

  StoreEntry find(const std::string& scheme) {
    const std::lock_guard lock(guard_);
    const auto it = entries_.find(scheme);
    if (it != entries_.end()) return it->second;
    std::string known;
    for (const auto& [name, entry] : entries_) known += (known.empty() ? "" : ", ") + name + ":";
    throw Error(Errc::kMisconfigured, "no store serves '" + scheme + ":'; this build has " + known);
  }

  std::vector<StoreEntry> all() {
    const std::lock_guard lock(guard_);
    std::vector<StoreEntry> out;
    for (const auto& [name, entry] : entries_) out.push_back(entry);
    return out;
  }

 private:
  std::mutex guard_;
  std::map<std::string, StoreEntry> entries_;  // by scheme; guarded by guard_
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

StoreEntry entry_of(std::string_view url) {
  const std::size_t colon = url.find(':');
  if (colon == url.npos || colon == 0) {
    throw Error(Errc::kMisconfigured,
                "the store's URL has no scheme; write sqlite:/path/to/file or memory:");
  }
  return registry().find(std::string(url.substr(0, colon)));
}

std::shared_ptr<Store> open(std::string_view url, const LogSink& log) {
  return entry_of(url).open(url, log);
}

}  // namespace simba::client

namespace simba::inline v0 {

std::shared_ptr<Store> open_store(std::string_view url, const LogSink& log) {
  return client::open(url, log);
}

Client connect(std::string_view url, ClientOptions options) {
  std::shared_ptr<Store> store = open_store(url, options.log);
  return Client(std::move(store), std::move(options));
}

Preparation prepare_store(std::string_view url, Prepare how) {
  const StoreEntry entry = client::entry_of(url);
  if (entry.prepare) return entry.prepare(url, how);
  return {"", "a store of '" + entry.scheme + ":' needs nothing to be made"};
}

Inspection inspect_store(std::string_view url) {
  const StoreEntry entry = client::entry_of(url);
  if (entry.inspect) return entry.inspect(url);
  return {{{"server", Finding::Verdict::kOk, "a store of '" + entry.scheme + ":', without one"}}};
}

std::optional<Client> connect(std::string_view url, std::error_code& error) {
  return connect(url, ClientOptions{}, error);
}

std::optional<Client> connect(std::string_view url, ClientOptions options, std::error_code& error) {
  return core::coded(error,
                     [&]() -> std::optional<Client> { return connect(url, std::move(options)); });
}

std::shared_ptr<Store> open_store(std::string_view url, const LogSink& log,
                                  std::error_code& error) {
  return core::coded(error, [&] { return open_store(url, log); });
}

Preparation prepare_store(std::string_view url, Prepare how, std::error_code& error) {
  return core::coded(error, [&] { return prepare_store(url, how); });
}

Inspection inspect_store(std::string_view url, std::error_code& error) {
  return core::coded(error, [&] { return inspect_store(url); });
}

void register_store(StoreEntry entry) {
  if (entry.scheme.empty() || !entry.open) {
    throw Error(Errc::kMisuse, "a store has a scheme, and a function that opens it");
  }
  client::registry().add(std::move(entry));
}

void register_store(std::string scheme, StoreFactory open) {
  register_store(StoreEntry{std::move(scheme), std::move(open)});
}

std::vector<StoreEntry> registered_stores() { return client::registry().all(); }

}  // namespace simba::inline v0
