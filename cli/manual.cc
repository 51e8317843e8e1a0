#include "cli/manual.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

namespace simba::cli {
namespace {

// What roff takes for its own.
std::string escaped(const std::string& line) {
  std::string text;
  for (const char c : line) {
    if (c == '\\') {
      text += "\\e";
    } else if (c == '-') {
      text += "\\-";
    } else if (c == '\'' || c == '`' || c == '^' || c == '~') {
      text += c == '\'' ? "\\(aq" : c == '`' ? "\\(ga" : c == '^' ? "\\(ha" : "\\(ti";
    } else {
      text += c;
    }
  }
  if (text.starts_with('.')) text.insert(0, "\\&");
  return text;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "Options:" at the beginning of a line opens a section.
bool is_heading(const std::string& line) {
  return !line.empty() && std::isupper(static_cast<unsigned char>(line[0])) != 0 &&
         line.ends_with(':') && line.find('.') == line.npos;
}

class Page {
 public:
  void add(const std::string& line) {
    if (is_heading(line)) {
      end_block();
      text_ += ".SH " + upper(escaped(line.substr(0, line.size() - 1))) + '\n';
    } else if (line.empty()) {
      is_spaced_ = true;
    } else if (line.starts_with("  ")) {
      if (!in_block_) text_ += is_spaced_ ? ".PP\n.nf\n" : ".nf\n";
      if (in_block_ && is_spaced_) text_ += ".sp\n";
      in_block_ = true;
      is_spaced_ = false;
      text_ += escaped(line) + '\n';
    } else {
      end_block();
      if (is_spaced_) text_ += ".PP\n";
      is_spaced_ = false;
      text_ += escaped(line) + '\n';
    }
  }
  std::string finish() {
    end_block();
    return text_;
  }

 private:
  void end_block() {
    if (in_block_) text_ += ".fi\n";
    in_block_ = false;
  }

  std::string text_;
  bool in_block_ = false, is_spaced_ = false;
};

// The first sentence, in one line.
std::string summary(const std::vector<std::string>& lines, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < lines.size() && !lines[i].empty(); ++i) {
    text += (text.empty() ? "" : " ") + lines[i];
  }
  text = text.substr(0, std::min(text.find(". "), text.size()));
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string manual(const std::string& command, const std::string& help) {
  std::vector<std::string> lines;
  std::istringstream text(help);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const std::string name = command.empty() ? "simba" : "simba\\-" + command;
  const std::string first = lines.empty() ? "" : lines[0];
  // "simba: what it is" or "simba run [options] ...", an empty line, and what it does.
  const std::string what = command.empty() ? first.substr(first.find(": ") + 2) : summary(lines, 2);
  std::string page = ".TH " + upper(name) +
                     " 1 \"" SIMBA_DATE "\" \"simba " SIMBA_VERSION "\"\n.SH NAME\n" + name +
                     " \\- " + escaped(what) + "\n.SH SYNOPSIS\n.nf\n" +
                     (command.empty() ? "simba COMMAND [options] ..." : escaped(first)) +
                     "\n.fi\n.SH DESCRIPTION\n";
  Page body;
  for (std::size_t i = 2; i < lines.size(); ++i) body.add(lines[i]);
  return page + body.finish();
}

}  // namespace simba::cli
