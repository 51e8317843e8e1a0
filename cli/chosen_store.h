#pragma once

#include <string>

#include "cli/config_file.h"
#include "simba/client.h"
#include "simba/store_entry.h"

// The store that was chosen. What is wrong with it is said with where it was said: a line, a
// variable, a flag.
namespace simba::cli {

// Throws UsageError that names where the URL was said, for a scheme that nobody serves, if one that
// is served was probably meant.
void check_scheme(const Configured& store);
// The same for a URL that its store does not take. Asks no server.
void check_url(const Configured& store);

// What the error says, and before it where the store was said, if that is where to mend it.
std::string told_of(const Configured& store, const Error& error);

// As connect() and prepare_store(); what they find misconfigured is a UsageError.
Client open_client(const Configured& store, const ClientOptions& options = {});
Preparation prepare(const Configured& store, Prepare how);

}  // namespace simba::cli
