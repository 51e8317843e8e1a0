#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simba::cli {

// A value as text, and where it stands: "simba.yaml:3".
struct Configured {
  std::string value, origin;
};

// The file with settings:
//
//   simba:
//     store: postgresql://db/app
//     ttl: 10s
//     jdbc:                        # of one kind of store, as in files of the JVM project
//       enabled: true
//       transition: 6s
//
// Other keys at the top that Spring knows are left alone, so that such a file can be taken as it
// is.
class ConfigFile {
 public:
  ConfigFile() = default;  // no file
  // Throws UsageError that names the line and what is allowed there.
  ConfigFile(const std::string& text, const std::string& name);

  // The one that was asked for, or the first that is there: ./simba.yaml,
  // $XDG_CONFIG_HOME/simba/simba.yaml. Throws UsageError when it cannot be read, or when others can
  // write it.
  static ConfigFile find(const std::optional<std::string>& asked_for, std::string_view asked_by);

  const std::string& name() const { return name_; }  // empty: none
  std::optional<Configured> get(const std::string& key) const;
  // Of the section of one kind of store.
  std::optional<Configured> get(const std::string& section, const std::string& key) const;
  // Of the narrowest section about stores of this URL that has it.
  std::optional<Configured> get_for(std::string_view url, const std::string& key) const;
  std::vector<std::string> sections() const;  // as they stand there
  // The first section that is not switched off, and where it stands.
  std::optional<Configured> first_section() const;

 private:
  class Reader;
  static std::optional<ConfigFile> read(const std::filesystem::path& path);

  std::string name_;
  std::map<std::string, Configured> values_;  // "ttl", "jdbc.ttl"
  std::map<int, Configured> sections_;        // by line
};

}  // namespace simba::cli
