#include "torture/error_log.h"

#include <algorithm>

namespace simba::torture {

ErrorLog::ErrorLog(const std::filesystem::path& file)
    : file_(file, kHead + kCapacity * sizeof(Entry)) {}

void ErrorLog::note_call(const Error& error) {
  ++page().counts.at(static_cast<std::size_t>(error.errc()));
  if (!error.is_transient()) keep(Trouble::Origin::kCall, error.errc(), error.what());
}

void ErrorLog::note_thrown(const Error& error) {
  if (!error.is_transient()) keep(Trouble::Origin::kThrown, error.errc(), error.what());
}

void ErrorLog::note_line(std::string_view line) { keep(Trouble::Origin::kLine, Errc{}, line); }

void ErrorLog::keep(Trouble::Origin origin, Errc errc, std::string_view text) {
  const std::uint64_t place = page().entries++;
  if (place >= kCapacity) return;
  Entry& kept = entry(place);
  kept.at = BootClock::now();
  kept.origin = origin;
  kept.errc = errc;
  kept.length = static_cast<std::uint32_t>(std::min(text.size(), kLongestText));
  std::copy_n(text.begin(), kept.length, kept.text.begin());
  kept.is_whole.store(true, std::memory_order_release);
}

ErrorCounts ErrorLog::counts() const {
  ErrorCounts found{};
  std::copy(page().counts.begin(), page().counts.end(), found.begin());
  return found;
}

std::vector<Trouble> ErrorLog::read(int client) const {
  const auto count = std::min<std::uint64_t>(page().entries.load(), kCapacity);
  std::vector<Trouble> found;
  for (std::size_t place = 0; place < count; ++place) {
    const Entry& kept = entry(place);
    if (!kept.is_whole.load(std::memory_order_acquire)) continue;  // killed before it had said it
    found.push_back(
        {kept.at, kept.origin, kept.errc, client, std::string(kept.text.data(), kept.length)});
  }
  return found;
}

}  // namespace simba::torture
