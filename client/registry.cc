#include "client/registry.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "simba/connect.h"

namespace simba::client {
namespace {

class Registry {
 public:
  Registry() {
    for (auto& [scheme, open] : built_in_stores()) schemes_.emplace(scheme, std::move(open));
  }

  void add(std::string scheme, OpenStore open) {
    const std::lock_guard lock(guard_);
    if (!schemes_.emplace(scheme, std::move(open)).second) {
      throw Error(Errc::kMisuse, "the scheme '" + scheme + "' is registered already");
    }
  }

  OpenStore find(const std::string& scheme) {
    const std::lock_guard lock(guard_);
    const auto it = schemes_.find(scheme);
    if (it != schemes_.end()) return it->second;
    std::string known;
    for (const auto& [name, open] : schemes_) known += (known.empty() ? "" : ", ") + name + ":";
    throw Error(Errc::kMisconfigured, "no store serves '" + scheme + ":'; this build has " + known);
  }

 private:
  std::mutex guard_;
  std::map<std::string, OpenStore> schemes_;  // guarded by guard_
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

std::shared_ptr<Store> open(std::string_view url, const LogSink& log) {
  const std::size_t colon = url.find(':');
  if (colon == url.npos || colon == 0) {
    throw Error(Errc::kMisconfigured,
                "the store's URL has no scheme; write sqlite:/path/to/file or memory:");
  }
  return registry().find(std::string(url.substr(0, colon)))(url, log);
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

void register_store(std::string scheme, StoreFactory open) {
  client::registry().add(std::move(scheme), std::move(open));
}

}  // namespace simba::inline v0
