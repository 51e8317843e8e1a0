#include "stores/mysql/connection.h"

#include <errmsg.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "stores/mysql/prepared.h"
#include "stores/mysql/statements.h"

namespace simba::mysql {
namespace {

constexpr std::size_t kStack =
    std::size_t{256} * 1024;  // of a call: resolvers and TLS need more than it has
constexpr unsigned long kOldestMariadb = 100'600, kOldestMysql = 80'004;  // SKIP LOCKED, JSON_TABLE
// What does not give the password itself away to whoever answers. caching_sha2_password and
// sha256_password do: within TLS as it is, and else for a key that whoever answers has brought.
constexpr const char* kSafePlugins = "mysql_native_password,client_ed25519,parsec";
// Who has none gives none away.
constexpr const char* kSafeWithoutPassword =
    "mysql_native_password,client_ed25519,parsec,caching_sha2_password,sha256_password";

// A server that is gone without a word is noticed.
void keep_alive(int socket) {
  const auto set = [&](int level, int name, int value) {
    setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

}  // namespace

Connection::Connection(Endpoint& endpoint, const kit::StopSignal& stop, Database database)
    : endpoint_(endpoint) {
  try {
    connect_to_any(stop, database);
    const int socket = mysql_get_socket(handle_);
    keep_alive(socket);
    // libmariadb does not: a program we start would keep the login and the locks of the doorbell.
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    set_non_blocking(socket);  // also one of the user's
    if (endpoint_.options().connector) take_texts();
    look_around(BootClock::now() + endpoint_.connect_timeout());
    connecting_ = false;
  } catch (...) {
    close();
    throw;
  }
}

Connection::~Connection() { close(); }

void Connection::close() noexcept {
  if (handle_ == nullptr) return;
  // No good-bye that could block, on a connection with a call under way.
  if (broken_) shutdown(mysql_get_socket(handle_), SHUT_RDWR);
  mysql_close(handle_);
  handle_ = nullptr;
  prepared_.clear();
}

void Connection::connect_to_any(const kit::StopSignal& stop, Database database) {
  const MysqlOptions& options = endpoint_.options();
  if (options.connector) return adopt(options.connector());
  if (!options.socket.empty()) return connect_to({"", 0}, stop, database);
  // Of several the first that writes, else the first that is there.
  std::optional<Error> first;
  const MysqlOptions::Host* reader = nullptr;
  for (const MysqlOptions::Host& host : options.hosts) {
    try {
      connect_to(host, stop, database);
      if (options.hosts.size() == 1 || !only_reads(BootClock::now() + options.connect_timeout)) {
        return;
      }
      if (reader == nullptr) reader = &host;
    } catch (const Error& error) {
      if (!first || (first->is_transient() && !error.is_transient())) first = error;
    }
    close();
    broken_ = false;
  }
  if (reader == nullptr) throw Error(*first);
  connect_to(*reader, stop, database);
}

void Connection::connect_to(const MysqlOptions::Host& host, const kit::StopSignal& stop,
                            Database database) {
  const MysqlOptions& options = endpoint_.options();
  // The library's own beginning is not safe from several threads.
  static const int begun = mysql_server_init(0, nullptr, nullptr);
  handle_ = begun == 0 ? mysql_init(nullptr) : nullptr;
  if (handle_ == nullptr) throw Error(Errc::kUnreachable, "mysql: there is no memory left");
  set_options();
  const LocalTime deadline = BootClock::now() + options.connect_timeout;
  const auto text = [](const std::string& value) {
    return value.empty() ? nullptr : value.c_str();
  };
  MYSQL* connected = nullptr;
  Leash leash(handle_, deadline);
  leash.let_no_read_wait();
  const int status = mysql_real_connect_start(
      &connected, handle_, text(host.first), options.user.c_str(), options.password.c_str(),
      database == Database::kNone ? nullptr : options.database.c_str(), host.second,
      text(options.socket), CLIENT_MULTI_STATEMENTS);
  finish(
      status, [&](int ready) { return mysql_real_connect_cont(&connected, handle_, ready); },
      deadline, &stop);
  if (connected == nullptr) {
    if (BootClock::now() >= deadline) give_up();
    broken_ = true;
    throw connect_failure(mysql_errno(handle_), mysql_error(handle_), endpoint_);
  }
  // The library goes on without TLS where the server has none, unless it has to verify it.
  const bool wants_tls = options.socket.empty() && options.tls != MysqlOptions::Tls::kDisable;
  if (wants_tls && mysql_get_ssl_cipher(handle_) == nullptr) {
    broken_ = true;
    throw connect_failure(CR_SSL_CONNECTION_ERROR, "the server speaks no TLS", endpoint_);
  }
}

void Connection::adopt(MYSQL* given) {
  handle_ = given;
  my_bool is_non_blocking = 0;
  if (given == nullptr || mysql_get_socket(given) < 0) {
    broken_ = true;
    throw connect_failure(given != nullptr ? mysql_errno(given) : unsigned{CR_CONNECTION_ERROR},
                          given != nullptr ? mysql_error(given) : "the connector gave none",
                          endpoint_);
  }
  // A session that the library makes anew by itself has none of our settings and locks.
  const my_bool reconnects = 0;
  mysql_optionsv(given, MYSQL_OPT_RECONNECT, &reconnects);
  mysql_get_optionv(given, MYSQL_OPT_NONBLOCK, &is_non_blocking);
  if (is_non_blocking != 0) return;
  throw Error(Errc::kMisconfigured,
              "mysql: the given connection cannot be waited for with a deadline: call "
              "mysql_options(connection, MYSQL_OPT_NONBLOCK, 0) before mysql_real_connect()");
}

// Of several statements, also where the connector did not ask for that.
void Connection::take_texts() {
  const LocalTime deadline = BootClock::now() + endpoint_.connect_timeout();
  const Leash leash(handle_, deadline);
  int error = 0;
  finish(
      mysql_set_server_option_start(&error, handle_, MYSQL_OPTION_MULTI_STATEMENTS_ON),
      [&](int ready) { return mysql_set_server_option_cont(&error, handle_, ready); }, deadline);
  if (error != 0) fail(mysql_errno(handle_), mysql_error(handle_));
}

void Connection::set_options() {
  const MysqlOptions& options = endpoint_.options();
  const unsigned no_files = 0;  // a server could ask for any file of ours
  unsigned protocol = options.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  // For each step of TLS's hand-shake libmariadb waits by itself, so many milliseconds; where it
  // takes them for seconds it does not, and our own deadline counts.
  const auto patience = static_cast<unsigned>(
      std::min<milliseconds::rep>(options.connect_timeout.count(), 2'000'000));
  mysql_optionsv(handle_, MYSQL_OPT_CONNECT_TIMEOUT, &patience);
  mysql_optionsv(handle_, MYSQL_OPT_NONBLOCK, &kStack);
  mysql_optionsv(handle_, MYSQL_OPT_PROTOCOL, &protocol);
  mysql_optionsv(handle_, MYSQL_OPT_LOCAL_INFILE, &no_files);
  mysql_optionsv(handle_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_optionsv(handle_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "simba");
  if (options.socket.empty()) set_tls();
}

void Connection::set_tls() {
  const MysqlOptions& options = endpoint_.options();
  const auto set = [&](mysql_option option, const std::string& file) {
    if (!file.empty()) mysql_optionsv(handle_, option, file.c_str());
  };
  const my_bool is_wanted = options.tls != MysqlOptions::Tls::kDisable;
  const my_bool is_verified = options.tls == MysqlOptions::Tls::kVerify;
  mysql_optionsv(handle_, MYSQL_OPT_SSL_ENFORCE, &is_wanted);
  mysql_optionsv(handle_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &is_verified);
  if (is_wanted != 0) {
    set(MYSQL_OPT_SSL_CA, options.root_certificate);
    set(MYSQL_OPT_SSL_CERT, options.certificate);
    set(MYSQL_OPT_SSL_KEY, options.key);
  }
  if (is_verified != 0) return;
  mysql_optionsv(handle_, MARIADB_OPT_RESTRICTED_AUTH,
                 options.password.empty() ? kSafeWithoutPassword : kSafePlugins);
}

void Connection::look_around(LocalTime deadline) {
  using Dialect = MysqlOptions::Dialect;
  const unsigned long version = mysql_get_server_version(handle_);
  if (version < (is_mariadb() ? kOldestMariadb : kOldestMysql)) {
    throw Error(Errc::kMisconfigured,
                "mysql at " + endpoint_.where() + ": the server says it is " +
                    mysql_get_server_info(handle_) +
                    "; this store needs MariaDB 10.6 or MySQL 8.0.4, or newer");
  }
  const Dialect dialect = endpoint_.options().dialect;
  speaks_mariadb_ = dialect == Dialect::kDetect ? is_mariadb() : dialect == Dialect::kMariadb;
  check_not_late(deadline);
}

bool Connection::only_reads(LocalTime deadline) {
  Result answer = query("SELECT " + only_reads_sql(), deadline);
  return answer.next() && answer.number(0) != 0;
}

std::string Connection::as_the_server_reads() const {
  return std::string(is_mariadb() ? "tx_read_only" : "transaction_read_only") + " = " +
         only_reads_sql();
}

bool Connection::is_usable() noexcept {
  // A server that says something unasked says good-bye.
  return !broken_ && !kit::wait_for(mysql_get_socket(handle_), POLLIN, LocalTime{});
}

short Connection::events_of(int status) noexcept {
  return static_cast<short>(((status & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
                            ((status & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0) |
                            ((status & MYSQL_WAIT_EXCEPT) != 0 ? POLLPRI : 0));
}

int Connection::wait(int status, LocalTime deadline, const kit::StopSignal* stop) {
  // That of the library's own, where it asks for one, is longer than ours.
  if (kit::wait_for(mysql_get_socket(handle_), events_of(status), deadline, stop)) {
    return status & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE | MYSQL_WAIT_EXCEPT);
  }
  give_up();
}

void Connection::give_up() {
  broken_ = true;
  if (connecting_) {
    throw Error(Errc::kUnreachable,
                "mysql at " + endpoint_.where() + ": no connection within " +
                    std::to_string(endpoint_.connect_timeout().count()) +
                    " ms; is the address right, and does a firewall let it through?");
  }
  throw Error(Errc::kTimeout, "mysql at " + endpoint_.where() +
                                  ": no answer before the deadline; whether the server acted is "
                                  "unknown");
}

void Connection::check_leash() {
  switch (Leash::end_of(handle_)) {
    case Leash::End::kNone:
      return;
    case Leash::End::kLate:
      give_up();
    case Leash::End::kTooLong:
      broken_ = true;
      refuse_answer(endpoint_.where(), "has no end, or is longer than any should be");
  }
}

void Connection::check_not_late(LocalTime deadline) const {
  if (BootClock::now() < deadline) return;
  throw Error(Errc::kTimeout, "mysql at " + endpoint_.where() +
                                  ": the deadline of the call passed; nothing was sent");
}

Result Connection::query(const std::string& sql, LocalTime deadline, std::size_t most_bytes) {
  return std::move(query_all(sql, deadline, most_bytes).back());
}

std::vector<Result> Connection::query_all(const std::string& sql, LocalTime deadline,
                                          std::size_t most_bytes) {
  check_not_late(deadline);
  const Leash leash(handle_, deadline, most_bytes);
  int error = 0;
  finish(
      mysql_real_query_start(&error, handle_, sql.data(), sql.size()),
      [&](int ready) { return mysql_real_query_cont(&error, handle_, ready); }, deadline);
  std::vector<Result> all;
  while (error == 0) {
    MYSQL_RES* rows = nullptr;
    finish(
        mysql_store_result_start(&rows, handle_),
        [&](int ready) { return mysql_store_result_cont(&rows, handle_, ready); }, deadline);
    all.emplace_back(rows, mysql_affected_rows(handle_), mysql_insert_id(handle_),
                     endpoint_.where());
    if (rows == nullptr && mysql_errno(handle_) != 0) break;
    int more = 0;  // -1: that was the last
    finish(
        mysql_next_result_start(&more, handle_),
        [&](int ready) { return mysql_next_result_cont(&more, handle_, ready); }, deadline);
    if (more < 0) return all;
    error = more;
  }
  fail(mysql_errno(handle_), mysql_error(handle_));
}

void Connection::fail(unsigned number, const char* text) {
  broken_ = broken_ || breaks_connection(number);
  throw failure(number, text, endpoint_);
}

void Connection::set_statements(std::shared_ptr<const Statements> statements) {
  statements_ = std::move(statements);
  prepared_.clear();
  prepared_.resize(statements_->prepared.size());
}

Prepared& Connection::prepared(std::size_t which, LocalTime deadline) {
  std::unique_ptr<Prepared>& slot = prepared_.at(which);
  if (!slot) slot = std::make_unique<Prepared>(*this, statements_->prepared[which]);
  slot->prepare(deadline);
  return slot->start();
}

}  // namespace simba::mysql
