#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "simba/client.h"
#include "simba/export.h"

namespace simba::inline v0 {

// A client for a URL: `sqlite:` (the default file), `sqlite:/path/to/file?synchronous=full`,
// `postgresql://host/database`, `zookeeper://host`, `memory:` or `memory:name`. Throws Error
// (kMisconfigured) for a scheme nobody serves, with those that are.
SIMBA_EXPORT Client connect(std::string_view url, ClientOptions options = {});
// The store alone.
SIMBA_EXPORT std::shared_ptr<Store> open_store(std::string_view url, const LogSink& log = {});

// Makes a store from outside the tree known under a scheme: from then on its URLs open it. `log` is
// where the store may say what a person should know; it can be empty.
using StoreFactory =
    std::function<std::shared_ptr<Store>(std::string_view url, const LogSink& log)>;
SIMBA_EXPORT void register_store(std::string scheme, StoreFactory open);

}  // namespace simba::inline v0
