#include "cli/settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/duration.h"
#include "cli/secrets.h"
#include "cli/sections.h"
#include "cli/url_file.h"
#include "cli/usage.h"
#include "cli/variables.h"
#include "core/names.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

struct Key {
  const char* name;
  const char* flag;  // "" where there is none
  const char* variable;
  const char* standard;  // "": made of others
  Settings::Text Settings::Flags::*given;
};

constexpr std::array kKeys{
    Key{"id", "--id", "SIMBA_ID", "COUNTER:PID@HOST", &Settings::Flags::id},
    Key{"ttl", "--ttl", "SIMBA_TTL", "10s", &Settings::Flags::ttl},
    Key{"transition", "--transition", "SIMBA_TRANSITION", "6s", &Settings::Flags::transition},
    Key{"initial-delay", "", "SIMBA_INITIAL_DELAY", "0s", nullptr},
    Key{"kill-after", "--kill-after", "SIMBA_KILL_AFTER", "", &Settings::Flags::kill_after}};

// What a program finds for a URL with a password.
constexpr const char* kWithheld = "withheld:";

// A person at the keyboard waits for a store that does not answer no longer than this, however
// long the lease is; that of a short lease is shorter.
constexpr milliseconds kLongestCall = 2s;
constexpr milliseconds kLongLease = 20s;

// The longest that any store holds.
constexpr std::size_t kLongestWireId = 255;

// How an error names a setting: "--ttl", "SIMBA_TTL: ttl", "simba.yaml:3: ttl".
std::string spoken(const std::string& name, const Configured& found) {
  return found.origin.starts_with("--") ? found.origin : found.origin + ": " + name;
}

const Key& key_of(const std::string& name) {
  for (const Key& key : kKeys) {
    if (name == key.name) return key;
  }
  std::abort();  // a name of ours
}

bool has_parameter(const std::string& url, const std::string& name) {
  return url.find('?' + name + '=') != url.npos || url.find('&' + name + '=') != url.npos;
}

// As it stands in a URL.
std::string escaped(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("-._~/:").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out.append(1, '%').append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
    }
  }
  return out;
}

// "": the directory itself, with a slash behind it. As it is, where the directory is gone.
std::string absolute_path(const std::filesystem::path& path) {
  std::error_code gone;
  const std::filesystem::path here = std::filesystem::current_path(gone);
  return gone ? path.string() : (here / path).string();
}

// Elsewhere, a path that is not absolute means another file.
std::string absolute_url(const std::string& url) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!url.starts_with(kScheme)) return url;
  const std::string path = url.substr(kScheme.size());
  const bool is_relative = !path.empty() && path[0] != '/' && path[0] != '?';
  return is_relative ? std::string(kScheme) + escaped(absolute_path("")) + path : url;
}

// In place of each there is, should it be there twice.
void set_variable(const char* name, const std::string& value) {
  // NOLINTBEGIN(concurrency-mt-unsafe): there is no thread yet
  unsetenv(name);
  setenv(name, value.c_str(), 1);
  // NOLINTEND(concurrency-mt-unsafe)
}

Settings::Text config_name(const Settings::Flags& flags, const char*& by) {
  by = flags.config ? "--config" : "SIMBA_CONFIG";
  return flags.config ? flags.config : variable("SIMBA_CONFIG");
}

ConfigFile find_file(const Settings::Flags& flags) {
  const char* by = nullptr;
  const Settings::Text name = config_name(flags, by);
  return ConfigFile::find(name, by);
}

std::vector<StoreProperty> properties_of_scheme(const std::string& url) {
  const std::string scheme = url.substr(0, url.find(':'));
  for (const StoreEntry& entry : registered_stores()) {
    if (entry.scheme == scheme) return entry.properties;
  }
  return {};
}

// What to add to a file of the JVM project, which has the database elsewhere.
std::string example_for(const std::string& section) {
  if (section == "jdbc")
    return "mysql://USER@HOST/DATABASE' or 'store: postgresql://USER@HOST/DATABASE";
  if (section == "mysql") return "mysql://USER@HOST/DATABASE";
  if (section == "postgres") return "postgresql://USER@HOST/DATABASE";
  if (section == "sqlite") return "sqlite:/path/to/file";
  return section + "://HOST";
}

void check_lease(const ContendOptions& options, const std::string& origins) {
  try {
    Timing::of(options);
  } catch (const Error& error) {
    throw UsageError(origins + ": " + error.what());
  }
}

// First of all: one that is mistyped may be why something else is missing.
Settings::Flags with_variables_checked(Settings::Flags flags) {
  std::vector<std::string> known{"SIMBA_CONFIG", "SIMBA_STORE", "SIMBA_STORE_FILE"};
  for (const Key& key : kKeys) known.emplace_back(key.variable);
  check_variables(known);
  return flags;
}

}  // namespace

Settings::Settings(Flags flags)
    : flags_(with_variables_checked(std::move(flags))),
      file_(find_file(flags_)),
      store_(with_properties(find_store())) {
  check_password();
  check_switches();
  check_other_sections();
}

// Everybody on the host can read command lines.
void Settings::check_password() const {
  if (!flags_.store || !has_password(*flags_.store)) return;
  throw UsageError(
      "--store: the URL has a password, which everybody on this host could read in the command "
      "line; set SIMBA_STORE to that URL, or SIMBA_STORE_FILE to a file with it");
}

void Settings::check_switches() const {
  for (const std::string& section : sections_of(store_.value)) {  // the narrowest decides
    const auto enabled = file_.get(section, "enabled");
    if (!enabled) continue;
    if (enabled->value == "true") return;
    throw UsageError(enabled->origin + ": simba." + section +
                     ".enabled is false, and the store is " + without_password(store_.value) +
                     " (" + store_.origin + "): switch it on, or choose another store");
  }
}

// What is wrong there would be found when somebody chooses that store.
void Settings::check_other_sections() const {
  const std::vector<std::string> in_use = sections_of(store_.value);
  for (const std::string& section : file_.sections()) {
    if (std::find(in_use.begin(), in_use.end(), section) != in_use.end()) continue;
    ContendOptions options;
    std::string origins;
    for (auto [name, into] :
         {std::pair{"ttl", &options.ttl}, std::pair{"transition", &options.transition}}) {
      const auto own = file_.get(section, name);
      const auto found = own ? own : file_.get(name);
      if (!found) continue;
      *into = parse_duration(spoken(name, *found), found->value);
      origins += (origins.empty() ? "" : ", ") + found->origin;
    }
    check_lease(options, origins);
  }
}

Configured Settings::find_store() const {
  if (flags_.store) return {*flags_.store, "--store"};
  const Text url = variable("SIMBA_STORE"), path = variable("SIMBA_STORE_FILE");
  if (url == kWithheld && !path) {
    throw UsageError(
        "the store of the 'simba' around this program has a password, which programs are not told: "
        "set SIMBA_STORE to the store for this one, or SIMBA_STORE_FILE to a file with its URL");
  }
  if (url && path && url != kWithheld) {
    throw UsageError(
        "SIMBA_STORE and SIMBA_STORE_FILE are both set, and only one of them can "
        "name the store: unset the other");
  }
  if (url && url != kWithheld) return {*url, "SIMBA_STORE"};
  if (path) {
    return {url_in({*path, "SIMBA_STORE_FILE"}), "SIMBA_STORE_FILE"};
  }
  if (const auto named = file_.get("store")) return *named;
  if (const auto file = file_.get("store-file")) return {url_in(*file), file->origin};
  if (const auto section = file_.first_section()) {
    throw UsageError(section->origin + ": simba." + section->value +
                     " is there, but not where the store is: add 'store: " +
                     example_for(section->value) + "' under 'simba:', or set SIMBA_STORE");
  }
  return {"sqlite:", "default"};
}

// What the file says of the store goes where the store looks for it, unless the URL says it itself.
Configured Settings::with_properties(Configured store) const {
  for (const StoreProperty& property : properties_of_scheme(store.value)) {
    const auto value = file_.get_for(store.value, property.name);
    if (value && !has_parameter(store.value, property.name)) {
      const char* joint = store.value.find('?') == std::string::npos ? "?" : "&";
      store.value += joint + property.name + '=' + escaped(value->value);
    }
  }
  return store;
}

std::string Settings::exposed_by() const {
  if (!has_password(store_.value)) return "";
  std::string path;
  if (store_.origin == "SIMBA_STORE_FILE") {
    path = *variable("SIMBA_STORE_FILE");
  } else if (store_.origin.starts_with(file_.name() + ':')) {
    const auto apart = file_.get("store") ? std::nullopt : file_.get("store-file");
    path = apart ? apart->value : file_.name();
  }
  return !path.empty() && is_read_by_all(path) ? path : "";
}

void Settings::pass_on_store() const {
  const char* by = nullptr;
  if (const Text name = config_name(flags_, by)) set_variable("SIMBA_CONFIG", absolute_path(*name));
  if (store_.origin != "--store" && store_.origin != "SIMBA_STORE") return;
  // As it was given: what the file says of the store is not for everybody, and is read again.
  const std::string given = flags_.store ? *flags_.store : *variable("SIMBA_STORE");
  unsetenv("SIMBA_STORE_FILE");  // NOLINT(concurrency-mt-unsafe): there is no thread yet
  set_variable("SIMBA_STORE", has_password(given) ? kWithheld : absolute_url(given));
}

std::optional<Configured> Settings::find(const std::string& name) const {
  const Key& key = key_of(name);
  if (key.given != nullptr && flags_.*key.given) return Configured{*(flags_.*key.given), key.flag};
  if (const Text value = variable(key.variable)) return Configured{*value, key.variable};
  if (auto value = file_.get_for(store_.value, name)) return value;
  return file_.get(name);
}

Configured Settings::id() const {
  Configured id = find("id").value_or(Configured{"", "default"});
  if (id.origin == "default") return id;
  try {
    core::check_label(id.value, kLongestWireId, "a store");
  } catch (const Error& error) {
    throw UsageError(id.origin + ": " + error.what());
  }
  return id;
}

ContendOptions Settings::unchecked_contend() const {
  ContendOptions options;
  options.initial_delay = duration("initial-delay").value_or(options.initial_delay);
  options.ttl = duration("ttl").value_or(options.ttl);
  options.transition = duration("transition").value_or(options.transition);
  if (options.ttl > kLongLease) options.call_deadline = kLongestCall;
  return options;
}

std::string Settings::lease_origins() const {
  std::string origins;
  for (const char* name : {"ttl", "transition"}) {
    const auto found = find(name);
    if (found) origins += (origins.empty() ? "" : ", ") + found->origin;
  }
  return origins;
}

ContendOptions Settings::contend() const {
  const ContendOptions options = unchecked_contend();
  check_lease(options, lease_origins());
  return options;
}

// Between the renewal and the end there must be time for a renewal that takes long, and then for
// TERM.
nanoseconds Settings::kill_after() const {
  const Timing timing = Timing::of(contend());
  const nanoseconds room = timing.revoke_at - timing.renew;
  const auto chosen = duration("kill-after");
  if (!chosen) return std::min({nanoseconds{2s}, timing.lease() / 4, room / 2});
  const nanoseconds most = room - timing.call_deadline;
  if (*chosen <= most) return *chosen;
  throw UsageError(spoken("kill-after", *find("kill-after")) + " is " + typed_duration(*chosen) +
                   ", but with ttl " + typed_duration(timing.ttl) + " and transition " +
                   typed_duration(timing.transition) + " it can be at most " +
                   typed_duration(most) + ": make it shorter, or the ttl or the transition longer");
}

std::optional<milliseconds> Settings::duration(const std::string& name) const {
  const auto found = find(name);
  if (!found) return std::nullopt;
  return parse_duration(spoken(name, *found), found->value);
}

std::vector<Settings::Line> Settings::lines() const {
  static_cast<void>(id());
  const std::string kill_after_in_force = typed_duration(kill_after());
  const char* asked_by = nullptr;
  const bool is_asked_for = config_name(flags_, asked_by).has_value();
  std::vector<Line> all{
      {"config", file_.name().empty() ? "none" : file_.name(), is_asked_for ? asked_by : "default"},
      {"store", without_password(store_.value), store_.origin}};
  for (const Key& key : kKeys) {
    const char* standard = *key.standard != '\0' ? key.standard : kill_after_in_force.c_str();
    const Configured found = find(key.name).value_or(Configured{standard, "default"});
    all.push_back({key.name, found.value, found.origin});
  }
  for (const StoreProperty& property : properties_of_scheme(store_.value)) {
    const auto found = file_.get_for(store_.value, property.name);
    if (!found) continue;
    const std::string shown = without_password("?" + property.name + '=' + found->value);
    all.push_back({property.name, shown.substr(property.name.size() + 2), found->origin});
  }
  return all;
}

}  // namespace simba::cli
