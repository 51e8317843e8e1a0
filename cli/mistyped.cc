#include "cli/mistyped.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/owner_view.h"
#include "cli/usage.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 10'000;
constexpr milliseconds kPatience = 5s;
constexpr milliseconds kShortPatience = 1s;  // of somebody who asked for something else

std::vector<std::string> names_in(Client& client, milliseconds patience) {
  std::vector<std::string> known;
  try {
    for (Listed& each : client.list({}, kMost, patience)) known.push_back(std::move(each.mutex));
  } catch (const Error&) {
    return {};  // it was asked for one mutex, not for this
  }
  return known;
}

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c < '0' || c > '9') out += c;
  }
  return out;
}

// Numbers are counted, not mistyped: shard-2 is not meant by shard-3.
std::string suggest(const std::string& name, std::vector<std::string> known) {
  const std::string bare = without_digits(name);
  std::erase_if(known, [&](const std::string& each) { return without_digits(each) == bare; });
  const std::string_view near = nearest(name, known);
  return near.empty() ? "" : "; did you mean '" + printable(near) + "'?";
}

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

std::string suggest_mutex(Client& client, const std::string& mutex) {
  return suggest(mutex, names_in(client, kPatience));
}

std::string suggest_prefix(Client& client, const std::string& prefix) {
  std::vector<std::string> known = names_in(client, kPatience);
  const std::size_t count = known.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t at = known[i].find('/'); at != std::string::npos;
         at = known[i].find('/', at + 1)) {
      known.push_back(known[i].substr(0, at + 1));
    }
  }
  return suggest(prefix, known);
}

void tell_if_new(Client& client, const std::string& mutex) {
  if (isatty(STDERR_FILENO) == 0) return;
  try {
    const OwnerView view(mutex, client.observe(mutex, kShortPatience));
    if (!view.free || view.token != 0) return;
  } catch (const Error&) {
    return;  // whoever contends says what is wrong
  }
  const std::string meant = suggest(mutex, names_in(client, kShortPatience));
  if (!meant.empty()) say("'" + printable(mutex) + "' is new" + meant);
}

}  // namespace simba::cli
