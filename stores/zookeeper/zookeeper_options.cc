#include "stores/zookeeper/zookeeper_options.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "stores/zookeeper/latch.h"

namespace simba::zookeeper {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::kMisconfigured, "zookeeper: " + why);
}

void check_path(const std::string& what, std::string_view path) {
  if (!path.starts_with('/')) refuse(what + " begins with '/'");
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    std::string why = name.empty() ? "a name in it is empty" : why_no_node_name(name);
    if (!why.empty()) refuse(why.insert(0, " cannot be used: ").insert(0, what));
    path.remove_prefix(name.size());
  }
}

// The client library takes the files as one list, with commas in between, and needs all of them.
void check_tls(const ZookeeperOptions& options) {
  const std::array files{&options.tls_ca, &options.tls_certificate, &options.tls_key};
  const auto missing =
      std::count_if(files.begin(), files.end(), [](auto* file) { return file->empty(); });
  if (missing == 3) return;
  need_tls("tls-ca");
  if (missing > 0) refuse("TLS needs tls-ca, tls-cert and tls-key, the client's own too");
  for (const std::string* file : files) {
    if (file->find(',') != file->npos) refuse("a file of TLS has a comma in its name");
  }
}

}  // namespace

bool has_tls() { return SIMBA_ZOOKEEPER_TLS != 0; }

void need_tls(const std::string& option) {
  if (has_tls()) return;
  refuse(option +
         " asks for TLS, and the client library of this build has none (libzookeeper_mt without "
         "zookeeper_init_ssl, as Debian ships it): leave it out and use a tunnel (stunnel, "
         "WireGuard) or a private network, or build Simba with a libzookeeper_mt that was built "
         "with OpenSSL");
}

void check_options(const ZookeeperOptions& options) {
  using Acl = ZookeeperOptions::Acl;
  if (options.servers.empty()) refuse("no server is named");
  if (!options.chroot.empty()) check_path("chroot", options.chroot);
  check_path("base", options.base);
  if (options.tick <= milliseconds::zero() || options.session_timeout < 3 * options.tick) {
    refuse("a session timeout of " + std::to_string(options.session_timeout.count()) +
           " ms is too short: it must be at least three ticks, of " +
           std::to_string(options.tick.count()) + " ms each");
  }
  const bool is_open = options.acl == Acl::kOpen || options.acl == Acl::kAutomatic;
  if (options.user.empty() && !is_open) refuse("an acl of creator or creator-read needs a user");
  check_tls(options);
}

}  // namespace simba::zookeeper
