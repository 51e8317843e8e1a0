#include "stores/redis/address.h"

#include "simba/error.h"
#include "stores/kit/url.h"

namespace simba::redis {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "redis: " + why);
}

}  // namespace

std::string Address::text() const {
  if (is_socket()) return host;
  const bool numeric6 = host.find(':') != host.npos;
  return (numeric6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

Address parse_address(std::string_view text, std::uint16_t default_port) {
  if (text.starts_with('/')) return {std::string(text), 0};
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) refuse("a host in brackets has no ']'");
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') refuse("after ']' comes ':' and the port");
    if (!port.empty()) port.remove_prefix(1);
  } else if (const std::size_t colon = text.rfind(':'); colon != text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) refuse("after ':' comes the port, a whole number from 1 to 65535");
  }
  if (host.empty()) refuse("a host is empty; write host:port, or /path/of/a/socket");
  const long value =
      port.empty() ? default_port : kit::parse_number("redis", "port", port, 1, 65'535);
  return {std::string(host), static_cast<std::uint16_t>(value)};
}

}  // namespace simba::redis
