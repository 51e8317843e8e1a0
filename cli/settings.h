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
  // The file its password stands in, if everybody on this host can read it; else empty.
  std::string exposed_by() const;
  // For the programs that this one runs: a `simba` among them means the same store, or hears that
  // it has to be told. Before there is a second thread.
  void pass_on_store() const;
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
  void check_password() const;
  void check_switches() const;
  void check_other_sections() const;
  Configured with_properties(Configured store) const;
  std::optional<Configured> find(const std::string& name) const;
  std::optional<milliseconds> duration(const std::string& name) const;

  const Flags flags_;
  const ConfigFile file_;
  const Configured store_;
};

}  // namespace simba::cli
