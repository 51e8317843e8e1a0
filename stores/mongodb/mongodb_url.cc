#include <mongoc/mongoc.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "simba/mongodb.h"
#include "stores/kit/url.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kWhose = "mongodb URL";
constexpr std::array<std::string_view, 3> kOurs{"database", "collection", "connections"};
// What the driver knows beside its typed options, and what people mistype.
constexpr std::array<std::string_view, 22> kTheirs{"replicaSet",
                                                   "authSource",
                                                   "authMechanism",
                                                   "authMechanismProperties",
                                                   "tls",
                                                   "ssl",
                                                   "tlsCAFile",
                                                   "tlsCertificateKeyFile",
                                                   "tlsInsecure",
                                                   "appName",
                                                   "directConnection",
                                                   "loadBalanced",
                                                   "readPreference",
                                                   "readPreferenceTags",
                                                   "readConcernLevel",
                                                   "w",
                                                   "journal",
                                                   "wtimeoutMS",
                                                   "socketTimeoutMS",
                                                   "connectTimeoutMS",
                                                   "heartbeatFrequencyMS",
                                                   "serverSelectionTimeoutMS"};

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

bool is_known(const std::string& name) {
  return mongoc_uri_option_is_int32(name.c_str()) || mongoc_uri_option_is_int64(name.c_str()) ||
         mongoc_uri_option_is_bool(name.c_str()) || mongoc_uri_option_is_utf8(name.c_str()) ||
         std::any_of(kTheirs.begin(), kTheirs.end(),
                     [&](std::string_view each) { return is_same(each, name); });
}

void check_name(const std::string& name, std::string_view query) {
  if (is_known(name)) return;
  std::vector<std::string_view> known(kOurs.begin(), kOurs.end());
  known.insert(known.end(), kTheirs.begin(), kTheirs.end());
  kit::refuse_parameter(kWhose, query, name, known);
}

bool set_ours(MongodbOptions& options, const std::string& name, const std::string& value) {
  if (name == "database") {
    options.database = value;
  } else if (name == "collection") {
    options.collection = value;
  } else if (name == "connections") {
    options.connections =
        static_cast<std::size_t>(kit::parse_number(kWhose, name, value, 2, 1'000));
  } else {
    return false;
  }
  return true;
}

}  // namespace

MongodbOptions mongodb_options(std::string_view url) {
  if (!url.starts_with("mongodb://") && !url.starts_with("mongodb+srv://")) {
    kit::refuse_url(kWhose, "it begins with mongodb:// or mongodb+srv://");
  }
  MongodbOptions options;
  const std::size_t question = url.find('?');
  options.uri = url.substr(0, question);
  if (question == url.npos) return options;
  // A '/' has to stand before the '?', which people forget.
  if (options.uri.find('/', options.uri.find("//") + 2) == options.uri.npos) options.uri += '/';
  const std::string_view query = url.substr(question + 1);
  std::string_view rest = query;
  char separator = '?';
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const kit::Query one = kit::parse_query(kWhose, part);
    if (one.empty()) continue;
    if (set_ours(options, one[0].first, one[0].second)) continue;
    check_name(one[0].first, query);
    options.uri.append(1, separator).append(part);  // as it was written
    separator = '&';
  }
  return options;
}

}  // namespace simba::inline v0
