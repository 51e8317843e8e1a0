#include "stores/redis/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "simba/error.h"

namespace simba::redis {
namespace {

std::string openssl_reason() {
  std::string all;
  for (unsigned long code = ERR_get_error(); code != 0; code = ERR_get_error()) {
    const char* text = ERR_reason_error_string(code);
    all += (all.empty() ? "" : "; ") + std::string(text != nullptr ? text : "unknown");
  }
  return all.empty() ? "no reason given" : all;
}

// What a server says before it hangs up because of who we are.
bool is_of_our_certificate(unsigned long code) {
  constexpr int kCertificateRequired = 116;  // which older headers do not name
  switch (ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case kCertificateRequired:
      return true;
    default:
      return false;
  }
}

Error tls_failure() {
  const bool ours = is_of_our_certificate(ERR_peek_error());
  const std::string why = openssl_reason();
  if (!ours) return {Errc::kUnreachable, "TLS failed: " + why};
  return {Errc::kMisconfigured, "the server wants to know who we are, and does not (" + why +
                                    "); give a certificate by an authority that it trusts as "
                                    "cert-file=FILE, and its key as key-file=FILE"};
}

// OpenSSL's own writes with write(), which raises SIGPIPE on a closed connection.
int descriptor_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int bio_write(BIO* bio, const char* from, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      send(descriptor_of(bio), from, static_cast<std::size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* to, int most) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = recv(descriptor_of(bio), to, static_cast<std::size_t>(most), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long bio_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0;
}

BIO_METHOD* make_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "simba");
  BIO_meth_set_write(method, bio_write);
  BIO_meth_set_read(method, bio_read);
  BIO_meth_set_ctrl(method, bio_control);
  BIO_meth_set_create(method, [](BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  });
  return method;
}

BIO* make_bio(int descriptor) {
  static BIO_METHOD* const method = make_method();
  BIO* bio = BIO_new(method);
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)));
  return bio;
}

bool is_ip(const std::string& name) {
  in6_addr any{};
  return inet_pton(AF_INET, name.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &any) == 1;
}

void expect_name(SSL* ssl, const std::string& name) {
  if (is_ip(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str());
    return;
  }
  SSL_set_tlsext_host_name(ssl, name.c_str());
  SSL_set1_host(ssl, name.c_str());
}

void use_file(bool used, const char* what, const std::string& file) {
  if (used) return;
  throw Error(Errc::kMisconfigured, std::string("redis: the ") + what + " '" + file +
                                        "' cannot be used: " + openssl_reason() +
                                        "; it is a PEM file that this process can read");
}

}  // namespace

TlsContext::TlsContext(const RedisOptions& options)
    : context_(SSL_CTX_new(TLS_client_method())), server_name_(options.server_name) {
  SSL_CTX* const context = context_.get();
  if (context == nullptr) throw std::bad_alloc();
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else {
    use_file(SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) == 1,
             "authority's certificate", options.ca_file);
  }
  if (options.cert_file.empty()) return;
  use_file(SSL_CTX_use_certificate_chain_file(context, options.cert_file.c_str()) == 1,
           "certificate", options.cert_file);
  use_file(SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) == 1,
           "key", options.key_file);
}

TlsTransport::TlsTransport(int descriptor, const TlsContext& context, const Address& address,
                           LocalTime deadline, const kit::StopSignal& stop)
    : Transport(descriptor), ssl_(SSL_new(context.get())) {
  if (!ssl_) throw std::bad_alloc();
  BIO* const bio = make_bio(descriptor);
  SSL_set_bio(ssl_.get(), bio, bio);
  expect_name(ssl_.get(), context.server_name().empty() ? address.host : context.server_name());
  shake_hands(deadline, stop);
}

void TlsTransport::shake_hands(LocalTime deadline, const kit::StopSignal& stop) {
  while (true) {
    ERR_clear_error();
    const int result = SSL_connect(ssl_.get());
    if (result == 1) return;
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      const short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      if (kit::wait_for(descriptor(), events, deadline, &stop)) continue;
      throw Error(Errc::kUnreachable,
                  "the server did not shake hands in time; does the port speak TLS?");
    }
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK) {
      throw Error(Errc::kMisconfigured,
                  std::string("the server is not the one that TLS should prove it to be: ") +
                      X509_verify_cert_error_string(verdict) +
                      "; give the certificate of its authority as ca-file=FILE, and the name in "
                      "its certificate as server-name=NAME");
    }
    const Error why = error == SSL_ERROR_SSL
                          ? tls_failure()
                          : Error(Errc::kUnreachable, "TLS failed: the connection was closed");
    if (!why.is_transient()) throw Error(why);
    throw Error(why.errc(), std::string(why.what()) + "; does the port speak TLS?");
  }
}

Transport::Moved TlsTransport::moved(int result) {
  if (result > 0) return {static_cast<std::size_t>(result), 0};
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {0, POLLIN};
    case SSL_ERROR_WANT_WRITE:
      return {0, POLLOUT};
    case SSL_ERROR_SSL:
      throw tls_failure();
    default:
      throw Error(Errc::kUnreachable, "the server closed the connection");
  }
}

Transport::Moved TlsTransport::read(char* to, std::size_t most) {
  const std::lock_guard lock(guard_);
  ERR_clear_error();
  return moved(SSL_read(ssl_.get(), to, static_cast<int>(most)));
}

Transport::Moved TlsTransport::write(const char* from, std::size_t count) {
  const std::lock_guard lock(guard_);
  ERR_clear_error();
  return moved(SSL_write(ssl_.get(), from, static_cast<int>(count)));
}

// Bytes alone say nothing: a farewell has some too.
bool TlsTransport::is_open() const noexcept {
  const std::lock_guard lock(guard_);
  ERR_clear_error();
  char byte = 0;
  const int got = SSL_peek(ssl_.get(), &byte, 1);
  if (got > 0) return true;
  const int error = SSL_get_error(ssl_.get(), got);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

bool TlsTransport::has_more() const {
  const std::lock_guard lock(guard_);
  return SSL_pending(ssl_.get()) > 0;
}

}  // namespace simba::redis
