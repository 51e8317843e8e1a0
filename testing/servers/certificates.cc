#include "testing/servers/certificates.h"

#include <fstream>
#include <stdexcept>

#include "testing/servers/process.h"
#include "testing/servers/server.h"

namespace simba::servers {
namespace {

const std::vector<std::string> kNewKey{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                                       "-nodes"};

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Certificates::Certificates() {
  if (find_program({"openssl"}).empty())
    throw Unavailable("there is no openssl on the PATH (Debian: openssl)");
}

void Certificates::openssl(const std::vector<std::string>& words) const {
  Command command;
  command.words = joined({"openssl"}, words);
  command.directory = files_.path();
  command.log = files_.path() / "log";
  Process process(command);
  if (!process.wait(std::chrono::seconds(20))) throw std::runtime_error("openssl does not end");
}

void Certificates::make_authority(const std::string& name) const {
  openssl(joined(
      joined({"req", "-x509"}, kNewKey),
      {"-keyout", name + ".key", "-out", name + ".crt", "-days", "2", "-subj", "/CN=" + name}));
}

void Certificates::make(const std::string& name, const std::string& authority,
                        const std::string& host) const {
  std::ofstream(files_.path() / (name + ".ext")) << "subjectAltName=" << host << '\n';
  openssl(joined(joined({"req"}, kNewKey),
                 {"-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name}));
  openssl({"x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt", "-CAkey",
           authority + ".key", "-CAcreateserial", "-out", name + ".crt", "-days", "2", "-extfile",
           name + ".ext"});
}

}  // namespace simba::servers
