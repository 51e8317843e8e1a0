#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "simba/client.h"
#include "simba/export.h"
#include "simba/store_entry.h"

namespace simba::inline v0 {

// A client for a URL: `sqlite:` (the default file), `sqlite:/path/to/file?synchronous=full`,
// `postgresql://host/database`, `zookeeper://host`, `memory:` or `memory:name`. Throws Error
// (kMisconfigured) for a scheme nobody serves, with those that are.
SIMBA_EXPORT Client connect(std::string_view url, ClientOptions options = {});
// The store alone.
SIMBA_EXPORT std::shared_ptr<Store> open_store(std::string_view url, const LogSink& log = {});

// Makes what the store of this URL needs before its first claim, where it is missing, or tells what
// that is. What a claim makes by itself, if its user may, is the same. Errors: kMisconfigured where
// something else stands in its place, kDenied with the statements where a privilege is missing.
SIMBA_EXPORT Preparation prepare_store(std::string_view url, Prepare how);

// Looks at the server, at what the store has there, and whether this user may contend. Makes
// nothing that is missing, and leaves nothing behind.
SIMBA_EXPORT Inspection inspect_store(std::string_view url);

// The same with an error code instead of an exception; what they return is empty then. Which value
// was wrong, and what to do, only the exception tells.
SIMBA_EXPORT std::optional<Client> connect(std::string_view url, std::error_code& error);
SIMBA_EXPORT std::optional<Client> connect(std::string_view url, ClientOptions options,
                                           std::error_code& error);
SIMBA_EXPORT std::shared_ptr<Store> open_store(std::string_view url, const LogSink& log,
                                               std::error_code& error);
SIMBA_EXPORT Preparation prepare_store(std::string_view url, Prepare how, std::error_code& error);
SIMBA_EXPORT Inspection inspect_store(std::string_view url, std::error_code& error);

// Makes a store from outside the tree known: from then on its URLs open it, and the tool serves it.
// Throws Error (kMisuse) for a scheme that is taken. docs/extending.md walks through it.
SIMBA_EXPORT void register_store(StoreEntry entry);
// The same with a factory alone. `log` is where the store may say what a person should know; it can
// be empty.
SIMBA_EXPORT void register_store(std::string scheme, StoreFactory open);
// All that are known, sorted by scheme.
SIMBA_EXPORT std::vector<StoreEntry> registered_stores();

}  // namespace simba::inline v0
