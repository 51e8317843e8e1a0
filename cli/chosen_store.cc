#include "cli/chosen_store.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/usage.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

std::string scheme_of(const std::string& url) {
  const std::size_t colon = url.find(':');
  return colon == url.npos ? "" : url.substr(0, colon);
}

// How others begin such URLs.
constexpr std::pair<std::string_view, const char*> kElsewhere[] = {
    {"file", "sqlite"},     {"maria", "mariadb"},       {"mem", "memory"},
    {"mongo", "mongodb"},   {"pg", "postgresql"},       {"pgsql", "postgresql"},
    {"psql", "postgresql"}, {"postgres", "postgresql"}, {"sqlite3", "sqlite"},
    {"zk", "zookeeper"},    {"zoo", "zookeeper"}};

// The scheme that was meant, or nothing.
std::string meant_by(const std::string& url, const std::vector<std::string>& known) {
  std::string scheme = scheme_of(url);
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // jdbc:mysql://, r2dbc:postgresql://, postgresql+psycopg2://: what is around ours
  if (scheme == "jdbc" || scheme == "r2dbc") return meant_by(url.substr(scheme.size() + 1), known);
  for (const std::string& whole : {scheme, scheme.substr(0, scheme.find('+'))}) {
    const auto is_it = [&](const auto& row) { return row.first == whole; };
    const auto* row = std::find_if(std::begin(kElsewhere), std::end(kElsewhere), is_it);
    std::string meant = row != std::end(kElsewhere) ? row->second : whole;
    if (std::find(known.begin(), known.end(), meant) != known.end()) return meant;
  }
  return std::string(nearest(scheme, known));
}

std::string listed(const std::vector<std::string>& schemes) {
  std::string all;
  for (const std::string& scheme : schemes) all += (all.empty() ? "" : ", ") + scheme + ':';
  return all;
}

// "simba.yaml:2: "; nobody said the default.
std::string named(const Configured& store) {
  return store.origin == "default" ? "" : store.origin + ": ";
}

// Does it, and what is thrown names where the store was said.
template <class Work>
auto naming(const Configured& store, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.errc() == Errc::kMisconfigured) throw UsageError(told_of(store, error));
    throw Error(error.errc(), told_of(store, error));
  }
}

}  // namespace

void check_scheme(const Configured& store) {
  const std::string scheme = scheme_of(store.value);
  std::vector<std::string> known;
  for (const StoreEntry& entry : registered_stores()) known.push_back(entry.scheme);
  if (scheme.empty() || std::find(known.begin(), known.end(), scheme) != known.end()) return;
  const std::string meant = meant_by(store.value, known);
  if (meant.empty()) return;  // said where it is opened
  throw UsageError(named(store) + "no store serves '" + printable(scheme) + ":'; did you mean '" +
                   meant + ":'? This build has " + listed(known));
}

void check_url(const Configured& store) {
  try {
    static_cast<void>(prepare_store(store.value, Prepare::kTell));  // asks no server
  } catch (const Error& error) {
    if (error.errc() == Errc::kMisconfigured) throw UsageError(named(store) + error.what());
  }
}

std::string told_of(const Configured& store, const Error& error) {
  const bool is_mended_there =
      error.errc() == Errc::kMisconfigured || error.errc() == Errc::kDenied;
  return (is_mended_there ? named(store) : "") + error.what();
}

Client open_client(const Configured& store, const ClientOptions& options) {
  return naming(store, [&] { return connect(store.value, options); });
}

Client open_to_look(const Configured& store) {
  const std::string missing = missing_in(store);
  if (missing.empty()) return open_client(store);
  say(missing);
  return connect("memory:");  // in which nobody ever held anything
}

std::string missing_in(const Configured& store) {
  const std::string scheme = scheme_of(store.value);
  for (const StoreEntry& entry : registered_stores()) {
    if (entry.scheme != scheme || !entry.missing) continue;
    const std::string what = naming(store, [&] { return entry.missing(store.value); });
    return what.empty() ? "" : "there is no " + what + " yet";
  }
  return "";
}

Preparation prepare(const Configured& store, Prepare how) {
  return naming(store, [&] { return prepare_store(store.value, how); });
}

}  // namespace simba::cli
