#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config_file.h"
#include "simba/options.h"
#include "simba/time.h"

namespace simba::cli {

// What was chosen, by whichever has the last word: a flag, else a variable of the environment, else
// the file, else the default.
class Settings {
 public:
  using Text = std::optional<std::string>;
  // What the flags said.
  struct Flags {
    Text config, store, id, ttl, transition, kill_after;
  };

  explicit Settings(Flags flags);

  // Where mutexes live. Throws UsageError where a file of the JVM project leaves it open.
  const Configured& store() const { return store_; }
  // Where its password stands, if everybody on this host can read it there, and what to do; else
  // empty.
  std::string exposed_by() const;
  // What cannot work is a UsageError that names where it was said: a line, a variable, a flag. Of
  // an id that is what no store can hold; each store has a limit of its own.
  Configured id() const;
  ContendOptions contend() const;
  // For who judges the lease himself; and where its ttl and transition were said.
  ContendOptions unchecked_contend() const;
  std::string lease_origins() const;
  nanoseconds kill_after() const;

  // All of them with their origins, checked, passwords left out.
  struct Line {
    std::string key, value, origin;
  };
  std::vector<Line> lines() const;
  const std::string& file() const { return file_.name(); }

 private:
  Configured find_store() const;
  Configured with_properties(Configured store) const;
  std::optional<Configured> find(const std::string& name) const;
  std::optional<milliseconds> duration(const std::string& name) const;

  const Flags flags_;
  const ConfigFile file_;
  const Configured store_;
};

// Without the password, if it has one.
std::string without_password(std::string url);

}  // namespace simba::cli
