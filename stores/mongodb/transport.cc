#include "stores/mongodb/transport.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "stores/mongodb/failure.h"

namespace simba::mongodb {
namespace {

constexpr int kType = 100;  // below it are the driver's own kinds of streams

struct Socket {
  mongoc_stream_t stream;  // first: the driver's view of this
  int descriptor;
  Limit* limit;
  bool timed_out;
};

Socket& of(mongoc_stream_t* stream) { return *reinterpret_cast<Socket*>(stream); }

LocalTime earlier(LocalTime deadline, int32_t timeout_msec) {
  if (timeout_msec <= 0) return deadline;
  return std::min(deadline, BootClock::now() + milliseconds{timeout_msec});
}

bool await(Socket& socket, short events, LocalTime until) {
  if (kit::wait_for(socket.descriptor, events, until, socket.limit->stop)) return true;
  socket.timed_out = true;
  errno = ETIMEDOUT;
  return false;
}

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Leaves out what has been done of the first buffers.
void advance(iovec*& buffers, std::size_t& count, std::size_t done) {
  while (count > 0 && done >= buffers->iov_len) {
    done -= buffers->iov_len;
    ++buffers;
    --count;
  }
  if (count == 0) return;
  buffers->iov_base = static_cast<char*>(buffers->iov_base) + done;
  buffers->iov_len -= done;
}

ssize_t write_all(mongoc_stream_t* stream, mongoc_iovec_t* buffers, std::size_t count,
                  int32_t timeout_msec) {
  Socket& socket = of(stream);
  socket.timed_out = false;
  const LocalTime until = earlier(socket.limit->deadline, timeout_msec);
  ssize_t total = 0;
  for (advance(buffers, count, 0); count > 0;) {
    msghdr message{};
    message.msg_iov = buffers;
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket.descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !is_passing(errno)) return -1;
    if (sent < 0 && !await(socket, POLLOUT, until)) return -1;
    if (sent < 0) continue;
    total += sent;
    advance(buffers, count, static_cast<std::size_t>(sent));
  }
  return total;
}

// At least `least` bytes, or nothing.
ssize_t read_some(mongoc_stream_t* stream, mongoc_iovec_t* buffers, std::size_t count,
                  std::size_t least, int32_t timeout_msec) {
  Socket& socket = of(stream);
  socket.timed_out = false;
  const LocalTime until = earlier(socket.limit->deadline, timeout_msec);
  ssize_t total = 0;
  advance(buffers, count, 0);
  while (count > 0) {
    msghdr message{};
    message.msg_iov = buffers;
    message.msg_iovlen = count;
    const ssize_t got = ::recvmsg(socket.descriptor, &message, MSG_DONTWAIT);
    if (got == 0) {
      errno = ECONNRESET;
      return -1;
    }
    if (got < 0 && !is_passing(errno)) return -1;
    if (got < 0 && !await(socket, POLLIN, until)) return -1;
    if (got < 0) continue;
    total += got;
    if (static_cast<std::size_t>(total) >= least) break;
    advance(buffers, count, static_cast<std::size_t>(got));
  }
  return total;
}

int close_socket(mongoc_stream_t* stream) {
  const int descriptor = std::exchange(of(stream).descriptor, -1);
  return descriptor < 0 ? 0 : ::close(descriptor);
}

void destroy(mongoc_stream_t* stream) {
  close_socket(stream);
  bson_free(stream);
}

bool is_closed(mongoc_stream_t* stream) {
  char byte = 0;
  const ssize_t got = ::recv(of(stream).descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && !is_passing(errno));
}

ssize_t poll_all(mongoc_stream_poll_t* streams, std::size_t count, int32_t timeout) {
  ssize_t ready = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pollfd one{of(streams[i].stream).descriptor, static_cast<short>(streams[i].events), 0};
    ready += ::poll(&one, 1, ready > 0 ? 0 : timeout) > 0 ? 1 : 0;
    streams[i].revents = one.revents;
  }
  return ready;
}

int set_option(mongoc_stream_t* stream, int level, int name, void* value, mongoc_socklen_t length) {
  return ::setsockopt(of(stream).descriptor, level, name, value, length);
}

mongoc_stream_t* make_stream(int descriptor, Limit& limit) {
  auto* socket = static_cast<Socket*>(bson_malloc0(sizeof(Socket)));
  socket->stream.type = kType;
  socket->stream.destroy = destroy;
  socket->stream.failed = destroy;
  socket->stream.close = close_socket;
  socket->stream.flush = [](mongoc_stream_t*) { return 0; };
  socket->stream.writev = write_all;
  socket->stream.readv = read_some;
  socket->stream.setsockopt = set_option;
  socket->stream.check_closed = is_closed;
  socket->stream.poll = poll_all;
  socket->stream.timed_out = [](mongoc_stream_t* stream) { return of(stream).timed_out; };
  socket->stream.should_retry = [](mongoc_stream_t*) { return is_passing(errno); };
  socket->descriptor = descriptor;
  socket->limit = &limit;
  return &socket->stream;
}

// The descriptor, or -1 with the reason in errno.
int connect_to(const sockaddr* address, socklen_t length, int family, const Limit& limit,
               LocalTime until) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -1;
  const int on = 1;
  if (family != AF_UNIX) {
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  if (::connect(descriptor, address, length) == 0) return descriptor;
  int error = errno;
  if (error == EINPROGRESS) {
    const bool came = kit::wait_for(descriptor, POLLOUT, until, limit.stop);
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (came) ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (came && error == 0) return descriptor;
  }
  ::close(descriptor);
  errno = error;
  return -1;
}

int connect_unix(const mongoc_host_list_t& host, const Limit& limit, LocalTime until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(std::strlen(host.host), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, host.host, length);
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, AF_UNIX, limit,
                    until);
}

int connect_tcp(const mongoc_host_list_t& host, const Limit& limit, LocalTime until,
                std::string& why) {
  addrinfo wanted{};
  wanted.ai_family = host.family == AF_INET || host.family == AF_INET6 ? host.family : AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(host.port);
  if (const int failed = ::getaddrinfo(host.host, port.c_str(), &wanted, &found); failed != 0) {
    why = ::gai_strerror(failed);
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  int descriptor = -1;
  for (const addrinfo* each = found; each != nullptr && descriptor < 0; each = each->ai_next) {
    descriptor = connect_to(each->ai_addr, each->ai_addrlen, each->ai_family, limit, until);
  }
  if (descriptor < 0) why = std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  return descriptor;
}

const char* option(const mongoc_uri_t* uri, const char* name) {
  return mongoc_uri_get_option_as_utf8(uri, name, nullptr);
}

// TLS on top where the URI says so, verified unless it says otherwise.
mongoc_stream_t* with_tls(mongoc_stream_t* plain, const mongoc_uri_t* uri,
                          const mongoc_host_list_t& host, bson_error_t* error) {
  mongoc_ssl_opt_t tls{};
  tls.pem_file = option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE);
  tls.pem_pwd = option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD);
  tls.ca_file = option(uri, MONGOC_URI_TLSCAFILE);
  const bool insecure = mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSINSECURE, false);
  tls.weak_cert_validation =
      insecure || mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES, false);
  tls.allow_invalid_hostname =
      insecure || mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES, false);
  mongoc_stream_t* secured = mongoc_stream_tls_new_with_hostname(plain, host.host, &tls, 1);
  if (secured == nullptr) {
    bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET,
                   "%s: check tlsCAFile and tlsCertificateKeyFile", kNoTls.data());
    mongoc_stream_destroy(plain);
    return nullptr;
  }
  constexpr int32_t kHandshake = 10'000;  // the limit's deadline comes first
  if (mongoc_stream_tls_handshake_block(secured, host.host, kHandshake, error)) return secured;
  mongoc_stream_destroy(secured);
  return nullptr;
}

mongoc_stream_t* open_stream(const mongoc_uri_t* uri, const mongoc_host_list_t* host, void* data,
                             bson_error_t* error) {
  Limit& limit = *static_cast<Limit*>(data);
  constexpr std::int32_t kConnect = 10'000;
  const LocalTime until = earlier(
      limit.deadline, mongoc_uri_get_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, kConnect));
  std::string why;
  const int descriptor = host->family == AF_UNIX ? connect_unix(*host, limit, until)
                                                 : connect_tcp(*host, limit, until, why);
  if (descriptor < 0) {
    bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_CONNECT,
                   "cannot connect to %s: %s", host->host_and_port, why.c_str());
    return nullptr;
  }
  mongoc_stream_t* stream = make_stream(descriptor, limit);
  if (mongoc_uri_get_tls(uri)) stream = with_tls(stream, uri, *host, error);
  return stream == nullptr ? nullptr : mongoc_stream_buffered_new(stream, 1024);
}

}  // namespace

void use_limited_sockets(mongoc_client_t* client, Limit& limit) {
  mongoc_client_set_stream_initiator(client, open_stream, &limit);
}

}  // namespace simba::mongodb
