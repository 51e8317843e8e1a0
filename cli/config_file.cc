#include "cli/config_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <system_error>
#include <vector>

#include "cli/duration.h"
#include "cli/sections.h"
#include "cli/url_file.h"
#include "cli/usage.h"

namespace simba::cli {
namespace {

using Names = std::vector<std::string>;

const Names kKeys{"store", "store-file", "id", "ttl", "transition", "initial-delay", "kill-after"};
const Names kSectionKeys{"enabled", "ttl", "transition", "initial-delay"};
// Looked at also in the section of a store that nobody has chosen yet.
const Names kDurations{"ttl", "transition", "initial-delay", "kill-after"};
// What else stands in files of Spring applications, whatever they are called.
const Names kOfOthers{"spring", "server", "logging", "management"};

// As Spring looks for it, among much else that is of the application.
bool is_of_spring(const std::filesystem::path& file) {
  const std::string name = file.stem().string(), end = file.extension().string();
  return (end == ".yaml" || end == ".yml") &&
         (name.starts_with("application") || name.starts_with("bootstrap"));
}

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// initialDelay, initial_delay and INITIAL-DELAY are one property to Spring.
std::string uniform(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// The one of `known` that is meant by any of these ways to write it; else the name as it is.
std::string canonical(const std::string& name, const Names& known) {
  const auto it = std::find_if(known.begin(), known.end(), [&](const std::string& each) {
    return uniform(each) == uniform(name);
  });
  return it == known.end() ? name : *it;
}

}  // namespace

class ConfigFile::Reader {
 public:
  explicit Reader(ConfigFile& file) : file_(file) {}

  void read(const YAML::Node& root) {
    if (root.IsNull()) return;
    need_map(root, "the file");
    for (const auto& entry : root) {
      const YAML::Node key = entry.first, value = entry.second;
      const std::string& name = key.Scalar();
      if (holds(kOfOthers, name.substr(0, name.find('.')))) continue;
      if (name == "simba") {
        read_simba(value);
        has_simba_ = true;
      } else if (name.starts_with("simba.")) {  // as in a properties file: simba.jdbc.ttl
        read_key(name.substr(6), key, value);
        has_simba_ = true;
      } else if (!is_of_spring(file_.name_)) {
        refuse(key, "'" + name + "' is not known here; everything stands under 'simba:'");
      }
    }
  }

  // A file of Spring may have more documents, each for some profile: we have none, and would not
  // know which of them counts.
  void read_further(const YAML::Node& root) const {
    if (!root.IsMap()) return;
    for (const auto& entry : root) {
      const YAML::Node key = entry.first;
      if (key.Scalar() != "simba" && !key.Scalar().starts_with("simba.")) continue;
      refuse(key,
             "'" + key.Scalar() +
                 "' stands in a second document (after '---'); write all of it in the first one, "
                 "or a file for each and choose with --config");
    }
  }

  void check_whole() const {
    const auto url = file_.get("store"), path = file_.get("store-file");
    if (url && path) {
      throw UsageError(path->origin + ": 'store-file' stands beside 'store' (" + url->origin +
                       "), and only one of them can name the store: keep that one");
    }
    // Else 'simba' may be mistyped: nothing else would tell.
    if (has_simba_ || !is_of_spring(file_.name_)) return;
    throw UsageError(file_.name_ +
                     ": nothing stands under 'simba:' in this file; add 'simba:' "
                     "with 'store: URL' below it, or name another file");
  }

 private:
  void read_simba(const YAML::Node& node) {
    if (node.IsNull()) return;
    need_map(node, "'simba'");
    for (const auto& entry : node) {
      const YAML::Node key = entry.first, value = entry.second;
      read_key(key.Scalar(), key, value);
    }
  }

  void read_key(const std::string& written, const YAML::Node& key, const YAML::Node& value) {
    Names all = kKeys;
    all.insert(all.end(), sections_.begin(), sections_.end());
    const std::size_t dot = written.find('.');
    const std::string name = canonical(written.substr(0, dot), all);
    const bool is_section = holds(sections_, name);
    if (is_section && dot != written.npos) {
      note_section(name, key);
      put_in(name, written.substr(dot + 1), key, value);
    } else if (is_section) {
      read_section(name, key, value);
    } else if (dot == written.npos && (holds(kKeys, name) || name == "enabled")) {
      put(name, key, value);  // enabled: of the JVM project, whether beans are made
    } else {
      refuse_key(key, written, all);
    }
  }

  void read_section(const std::string& section, const YAML::Node& at, const YAML::Node& node) {
    note_section(section, at);
    if (node.IsNull()) return;
    need_map(node, "'" + section + "'");
    for (const auto& entry : node) {
      const YAML::Node key = entry.first, value = entry.second;
      put_in(section, key.Scalar(), key, value);
    }
  }

  void put_in(const std::string& section, const std::string& written, const YAML::Node& key,
              const YAML::Node& value) {
    const std::vector<StoreProperty> properties = properties_of(section);
    Names known = kSectionKeys;
    for (const StoreProperty& property : properties) known.push_back(property.name);
    const std::string name = canonical(written, known);
    if (!holds(known, name)) refuse_key(key, name, known);
    const std::string whole = section + '.' + name;
    put(whole, key, value);
    for (const StoreProperty& property : properties) {
      if (property.name != name || !property.accepts || property.accepts(value.Scalar())) continue;
      refuse(key, "'" + whole + "' is '" + value.Scalar() + "'; it can be " + property.allowed);
    }
  }

  void note_section(const std::string& section, const YAML::Node& at) {
    file_.sections_.try_emplace(at.Mark().line, Configured{section, where(at)});
  }

  void put(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    if (!value.IsScalar()) refuse(key, "'" + name + "' has to be one value");
    const std::string& text = value.Scalar();
    const std::string last = name.substr(name.rfind('.') + 1);
    if (holds(kDurations, last)) static_cast<void>(parse_duration(where(key) + ": " + name, text));
    if (last == "enabled" && text != "true" && text != "false") {
      refuse(key, "'" + name + "' is '" + text + "'; it can be true or false");
    }
    if (!file_.values_.emplace(name, Configured{text, where(key)}).second) {
      refuse(key, "'" + name + "' stands here twice");
    }
  }

  void need_map(const YAML::Node& node, const std::string& what) const {
    if (!node.IsMap()) refuse(node, what + " has to hold keys and values, as in 'ttl: 10s'");
  }

  std::string where(const YAML::Node& node) const {
    return file_.name_ + ':' + std::to_string(node.Mark().line + 1);
  }
  [[noreturn]] void refuse(const YAML::Node& node, const std::string& why) const {
    throw UsageError(where(node) + ": " + why);
  }
  [[noreturn]] void refuse_key(const YAML::Node& key, const std::string& name,
                               const Names& known) const {
    const std::string_view near = nearest(name, known);
    refuse(key, "'" + name + "' is not known" +
                    (near.empty() ? "." : "; did you mean '" + std::string(near) + "'?") +
                    " It can be " + listed(known));
  }

  ConfigFile& file_;
  const Names sections_ = known_sections();
  bool has_simba_ = false;
};

namespace {

// The parser makes empty documents without an end where it meets a word that begins nothing, as a
// ',' that is in no list, and loading them takes all memory there is.
class Progress : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == begun_) throw YAML::ParserException(mark, "nothing of YAML begins like this");
    begun_ = mark.pos;
    last_ = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    last_ = mark;
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark last() const { return last_; }

 private:
  int begun_ = -1;
  YAML::Mark last_;  // where something was that has been understood
};

// Of YAML, for somebody who may know little of it.
std::string refusal_of(const YAML::Exception& error, const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= error.mark.line && std::getline(lines, line); ++i) continue;
  const std::size_t begin = line.find_first_not_of(" \t");
  const bool has_tab = line.substr(0, begin).find('\t') != std::string::npos;
  if (has_tab) return "a tab stands before the key; YAML wants spaces there";
  return "this is not YAML (" + error.msg +
         "); look at the quotes, the colons and the spaces, here and in the lines before";
}

void check_progress(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Progress progress;
  while (parser.HandleNextDocument(progress)) continue;
}

// The parser takes the end of the file for a quote that is missing, and the settings before it for
// text. What ends a document it refuses within quotes.
void check_quotes(const std::string& text) {
  std::istringstream in(text + "\n...\n");
  YAML::Parser parser(in);
  Progress progress;
  try {
    while (parser.HandleNextDocument(progress)) continue;
  } catch (const YAML::Exception& error) {
    if (error.msg != YAML::ErrorMsg::DOC_IN_SCALAR) return;
    throw YAML::ParserException(progress.last(), "a quote is not closed");
  }
}

}  // namespace

ConfigFile::ConfigFile(const std::string& text, const std::string& name) : name_(name) {
  try {
    check_progress(text);
    check_quotes(text);
    Reader reader(*this);
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (!documents.empty()) reader.read(documents[0]);
    for (std::size_t i = 1; i < documents.size(); ++i) reader.read_further(documents[i]);
    reader.check_whole();
  } catch (const YAML::Exception& error) {
    throw UsageError(name + ':' + std::to_string(error.mark.line + 1) + ": " +
                     refusal_of(error, text));
  }
}

namespace {

// The other kind of file that Spring takes.
[[noreturn]] void refuse_properties(const std::string& name, std::istream& file) {
  std::string key = "simba.ttl", where = name;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    if (line.compare(begin, 6, "simba.") != 0) continue;
    key = line.substr(begin, line.find_first_of("=: \t", begin) - begin);
    where += ':' + std::to_string(number);
    break;
  }
  throw UsageError(where + ": a properties file is not read; write '" + key + ": VALUE' for '" +
                   key + "=VALUE' in a file that ends in .yaml, and name that one");
}

}  // namespace

std::optional<ConfigFile> ConfigFile::read(const std::filesystem::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const int why = errno;
    if (std::error_code none; std::filesystem::is_symlink(path, none)) {
      throw UsageError(path.string() + " is a link to nothing");
    }
    if (why == ENOENT || why == ENOTDIR) return std::nullopt;
    throw UsageError("cannot read " + path.string() + ": " + std::generic_category().message(why));
  }
  if (S_ISDIR(info.st_mode)) {
    throw UsageError(path.string() + " is a directory; settings are read from a file");
  }
  check_writers(path.string(), info);
  std::ifstream file(path);
  if (path.extension() == ".properties") refuse_properties(path.string(), file);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw UsageError("cannot read " + path.string());
  return ConfigFile(text.str(), path.string());
}

ConfigFile ConfigFile::find(const std::optional<std::string>& asked_for,
                            std::string_view asked_by) {
  if (asked_for) {
    if (auto file = read(*asked_for)) return std::move(*file);
    throw UsageError("there is no file '" + *asked_for + "', which " + std::string(asked_by) +
                     " names");
  }
  if (auto file = read("simba.yaml")) return std::move(*file);
  const char* xdg = std::getenv("XDG_CONFIG_HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  const char* home = std::getenv("HOME");            // NOLINT(concurrency-mt-unsafe)
  std::filesystem::path directory;
  if (xdg != nullptr && *xdg == '/') {
    directory = xdg;
  } else if (home != nullptr && *home == '/') {
    directory = std::filesystem::path(home) / ".config";
  } else {
    return {};
  }
  if (auto file = read(directory / "simba" / "simba.yaml")) return std::move(*file);
  return {};
}

std::optional<Configured> ConfigFile::get(const std::string& key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Configured> ConfigFile::get(const std::string& section,
                                          const std::string& key) const {
  return get(section + '.' + key);
}

std::vector<std::string> ConfigFile::sections() const {
  std::vector<std::string> names;
  for (const auto& [line, section] : sections_) names.push_back(section.value);
  return names;
}

std::optional<Configured> ConfigFile::first_section() const {
  for (const auto& [line, section] : sections_) {
    const auto enabled = get(section.value, "enabled");
    if (!enabled || enabled->value == "true") return section;
  }
  return std::nullopt;
}

std::optional<Configured> ConfigFile::get_for(std::string_view url, const std::string& key) const {
  for (const std::string& section : sections_of(url)) {
    if (auto value = get(section, key)) return value;
  }
  return std::nullopt;
}

}  // namespace simba::cli
