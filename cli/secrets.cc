#include "cli/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "simba/connect.h"

namespace simba::cli {
namespace {

// Of whichever store: the scheme of a URL may be mistyped.
bool is_declared_secret(const std::string& name) {
  const std::vector<StoreEntry> stores = registered_stores();
  return std::any_of(stores.begin(), stores.end(), [&](const StoreEntry& store) {
    return std::any_of(
        store.properties.begin(), store.properties.end(),
        [&](const StoreProperty& property) { return property.secret && property.name == name; });
  });
}

// By name too: a store need not have declared it.
bool means_secret(std::string name) {
  if (is_declared_secret(name)) return true;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.ends_with("file") || name == "authsource" || name == "authmechanism") return false;
  constexpr std::array kWords{"pass", "pwd", "secret", "token", "auth", "credential"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return name.find(word) != name.npos; });
}

// Where the next secret among the parameters stands, from `at` on; both are the URL's end where
// there is none.
struct Span {
  std::size_t begin, end;
};

Span next_secret(const std::string& url, std::size_t at) {
  for (at = url.find_first_of("?&", at); at != url.npos; at = url.find('&', at + 1)) {
    const std::size_t equals = std::min(url.find('=', at), url.size());
    const std::size_t end = std::min(url.find('&', at + 1), url.size());
    const bool has_value = equals + 1 < end;
    if (has_value && means_secret(url.substr(at + 1, equals - at - 1))) return {equals + 1, end};
  }
  return {url.size(), url.size()};
}

}  // namespace

bool has_password(const std::string& url) {
  const std::size_t query = std::min(url.find('?'), url.size());
  const std::size_t user = url.find("//");
  const std::size_t at = url.rfind('@', query);
  const std::size_t colon = user == url.npos ? user : url.find(':', user + 2);
  const bool beside_user = at != url.npos && colon < at && at - colon > 1;
  return beside_user || next_secret(url, query).begin < url.size();
}

std::string without_password(std::string url) {
  const std::size_t user = url.find("//");
  if (user != url.npos) {
    const std::size_t at = url.rfind('@');  // too much is left out rather than too little
    const std::size_t colon = url.find(':', user + 2);
    if (at != url.npos && at > user && colon < at) url.replace(colon + 1, at - colon - 1, "***");
  }
  constexpr std::string_view kHidden = "***";
  for (std::size_t from = std::min(url.find('?'), url.size()); from < url.size();) {
    const auto [begin, end] = next_secret(url, from);
    if (begin == url.size()) break;
    url.replace(begin, end - begin, kHidden);
    from = begin + kHidden.size();
  }
  return url;
}

}  // namespace simba::cli
