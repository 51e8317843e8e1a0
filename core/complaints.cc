#include "core/complaints.h"

#include <algorithm>
#include <functional>

namespace simba::core {
namespace {

constexpr std::chrono::minutes kAgain{1};
constexpr std::size_t kMostTexts = 3;    // of one kind in a minute: some have numbers in them
constexpr std::size_t kMostKinds = 256;  // beyond it all are forgotten, and said once more

}  // namespace

std::optional<std::string> Complaints::failed(std::string_view mutex, const Error& error,
                                              LocalTime now) {
  if (said_.size() >= kMostKinds) said_.clear();
  Said& said = said_[Kind{mutex, error.errc()}];
  if (said.texts.empty() || now - said.first >= kAgain) said = {now, {}};
  const std::size_t text = std::hash<std::string_view>{}(error.what());
  const bool is_new = std::find(said.texts.begin(), said.texts.end(), text) == said.texts.end();
  if (!is_new || said.texts.size() >= kMostTexts) return std::nullopt;
  said.texts.push_back(text);
  if (!mutex.empty()) return "'" + std::string{mutex} + "': " + error.what();
  is_down_ = true;
  return "the store's trouble, tried again until it is over: " + std::string{error.what()};
}

std::optional<std::string> Complaints::answered() {
  if (!is_down_) return std::nullopt;
  is_down_ = false;
  std::erase_if(said_, [](const auto& said) { return said.first.first.empty(); });
  return "the store answers again";
}

}  // namespace simba::core
