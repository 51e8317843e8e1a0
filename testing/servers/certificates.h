#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testing/servers/directory.h"

namespace simba::servers {

// Certificate authorities, and what they certify, made by the openssl program: NAME.crt and
// NAME.key in a directory.
//
// Threads: one object, one thread. Errors: Unavailable where there is no openssl,
// std::runtime_error.
class Certificates {
 public:
  Certificates();

  void make_authority(const std::string& name) const;
  // `host` as in "IP:127.0.0.1" or "DNS:db.example.com".
  void make(const std::string& name, const std::string& authority, const std::string& host) const;

  std::filesystem::path certificate(const std::string& name) const {
    return files_.path() / (name + ".crt");
  }
  std::filesystem::path key(const std::string& name) const {
    return files_.path() / (name + ".key");
  }

 private:
  void openssl(const std::vector<std::string>& words) const;

  Directory files_;
};

}  // namespace simba::servers
