#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace simba::redis {

// Where a server listens: a host and a port, or the path of a socket.
struct Address {
  std::string host;  // or the path, which begins with '/'
  std::uint16_t port = 0;

  bool is_socket() const { return host.starts_with('/'); }
  std::string text() const;  // "host:port", "[::1]:port", "/path"
  friend bool operator==(const Address&, const Address&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): it means the zero that a comparison is compared with
  friend auto operator<=>(const Address&, const Address&) = default;
};

// "host", "host:port", "[::1]:port", "/path". Throws Error (kMisconfigured).
Address parse_address(std::string_view text, std::uint16_t default_port);

}  // namespace simba::redis
