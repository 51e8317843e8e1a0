#include "cli/mistyped.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/owner_view.h"
#include "cli/usage.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 10'000;
constexpr milliseconds kPatience = 5s;
constexpr milliseconds kShortPatience = 1s;  // of somebody who asked for something else

std::vector<std::string> names_in(Client& client, milliseconds patience) {
  std::vector<std::string> known;
  try {
    for (Listed& each : client.list({}, kMost, patience)) known.push_back(std::move(each.mutex));
  } catch (const Error&) {
    return {};  // it was asked for one mutex, not for this
  }
  return known;
}

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c < '0' || c > '9') out += c;
  }
  return out;
}

// Numbers are counted, not mistyped: shard-2 is not meant by shard-3.
std::string suggest(const std::string& name, std::vector<std::string> known) {
  const std::string bare = without_digits(name);
  std::erase_if(known, [&](const std::string& each) { return without_digits(each) == bare; });
  const std::string_view near = nearest(name, known);
  return near.empty() ? "" : "; did you mean '" + printable(near) + "'?";
}

}  // namespace

std::string suggest_mutex(Client& client, const std::string& mutex) {
  return suggest(mutex, names_in(client, kPatience));
}

std::string suggest_prefix(Client& client, const std::string& prefix) {
  std::vector<std::string> known = names_in(client, kPatience);
  const std::size_t count = known.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t at = known[i].find('/'); at != std::string::npos;
         at = known[i].find('/', at + 1)) {
      known.push_back(known[i].substr(0, at + 1));
    }
  }
  return suggest(prefix, known);
}

void tell_if_new(Client& client, const std::string& mutex) {
  if (isatty(STDERR_FILENO) == 0) return;
  try {
    const OwnerView view(mutex, client.observe(mutex, kShortPatience));
    if (!view.free || view.token != 0) return;
  } catch (const Error&) {
    return;  // whoever contends says what is wrong
  }
  const std::string meant = suggest(mutex, names_in(client, kShortPatience));
  if (!meant.empty()) say("'" + printable(mutex) + "' is new" + meant);
}

}  // namespace simba::cli
