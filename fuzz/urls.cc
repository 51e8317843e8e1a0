// The URL of each store: options or Error (kMisconfigured), which never repeats a value.
#include <array>
#include <string>

#include "fuzz/target.h"
#include "simba/error.h"
#include "simba/mongodb.h"
#include "simba/mysql.h"
#include "simba/postgres.h"
#include "simba/redis.h"
#include "simba/sqlite.h"
#include "simba/zookeeper.h"
#include "stores/kit/url.h"
#include "stores/redis/address.h"

namespace {

constexpr std::array<std::string_view, 10> kSchemes{
    "sqlite:",   "postgresql://",     "mysql://",         "mariadb://",   "redis://",
    "rediss://", "redis+sentinel://", "redis+cluster://", "zookeeper://", "mongodb://"};

void parse(std::string_view url) {
  if (url.starts_with("sqlite:")) simba::sqlite_options(url);
  if (url.starts_with("postgresql:")) simba::postgres_options(url);
  if (url.starts_with("mysql:") || url.starts_with("mariadb:")) simba::mysql_options(url);
  if (url.starts_with("redis")) simba::redis_options(url);
  if (url.starts_with("zookeeper:")) simba::zookeeper_options(url);
  if (url.starts_with("mongodb:")) simba::mongodb_options(url);
}

// With a password in front of the host. What is wrong with the rest does not bring it to light.
void hides_password(std::string_view scheme, std::string_view rest) {
  const std::string url = std::string(scheme) + "user:Hidd3nW0rd@" + std::string(rest);
  try {
    parse(url);
  } catch (const simba::Error& error) {
    simba::fuzz::require(
        std::string_view(error.what()).find("Hidd3nW0rd") == std::string_view::npos,
        "an error never shows the password");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view scheme = kSchemes[data[0] % kSchemes.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (text.find("-file=") != text.npos) return 0;  // would read files of this machine
  simba::fuzz::accepts<simba::Error>([&] { parse(std::string(scheme) + std::string(text)); });
  if (scheme.ends_with("//")) hides_password(scheme, text);
  simba::fuzz::accepts<simba::Error>([&] { simba::redis::parse_address(text, 6379); });
  simba::fuzz::accepts<simba::Error>([&] { simba::kit::parse_query("a URL", text); });
  return 0;
}
