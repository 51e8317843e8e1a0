#include "core/complaints.h"

namespace simba::core {
namespace {

constexpr std::chrono::minutes kAgain{1};
constexpr std::size_t kMostKinds = 256;  // beyond it all are forgotten, and said once more

}  // namespace

std::optional<std::string> Complaints::failed(std::string_view mutex, const Error& error,
                                              LocalTime now) {
  if (said_.size() >= kMostKinds) said_.clear();
  const auto [it, is_new] = said_.try_emplace(Kind{mutex, error.errc()}, now);
  if (!is_new && now - it->second < kAgain) return std::nullopt;
  it->second = now;
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
