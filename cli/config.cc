#include <nlohmann/json.hpp>

#include <algorithm>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/settings.h"

namespace simba::cli {
namespace {

std::string json_of(const Settings::Line& line) {
  nlohmann::ordered_json object;
  object["key"] = line.key;
  object["value"] = line.value;
  object["origin"] = line.origin;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

}  // namespace

int config(const Settings& settings, Format format) {
  const auto lines = settings.lines();
  std::size_t widest = 0;
  for (const auto& line : lines) widest = std::max(widest, width_of(printable(line.value)));
  std::string text;
  for (const auto& line : lines) {
    text += format == Format::kJson ? json_of(line)
                                    : padded(line.key, 15) + padded(printable(line.value), widest) +
                                          "  " + styled(Style::kDim, printable(line.origin)) + '\n';
  }
  return print(text) ? exit_code::kOk : exit_code::kUnavailable;
}

}  // namespace simba::cli
