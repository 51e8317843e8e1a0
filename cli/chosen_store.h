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
// For who only looks: what is not there yet is not made. That is said, and the client finds nothing
// held.
Client open_to_look(const Configured& store);
// "there is no file /srv/app/locks.db yet", or empty.
std::string missing_in(const Configured& store);
Preparation prepare(const Configured& store, Prepare how);

}  // namespace simba::cli
