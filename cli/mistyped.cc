#include "cli/mistyped.h"

#include "cli/output.h"
#include "cli/usage.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

constexpr std::size_t kMost = 10'000;

}  // namespace

void check_scheme(const std::string& url) {
  const std::size_t colon = url.find(':');
  if (colon == url.npos) return;  // said where it is opened
  const std::string scheme = url.substr(0, colon);
  std::vector<std::string> known;
  for (const StoreEntry& entry : registered_stores()) {
    if (entry.scheme == scheme) return;
    known.push_back(entry.scheme);
  }
  const std::string_view near = nearest(scheme, known);
  if (near.empty()) return;
  throw UsageError("no store serves '" + scheme + ":'; did you mean '" + std::string(near) +
                   ":'? See simba --help");
}

std::string suggest_mutex(Client& client, const std::string& mutex) {
  std::vector<std::string> known;
  try {
    for (Listed& each : client.list({}, kMost)) known.push_back(std::move(each.mutex));
  } catch (const Error&) {
    return {};  // it was asked for one mutex, not for this
  }
  const std::string_view near = nearest(mutex, known);
  return near.empty() || near == mutex ? "" : "; did you mean '" + printable(near) + "'?";
}

}  // namespace simba::cli
