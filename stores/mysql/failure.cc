#include "stores/mysql/failure.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "stores/kit/shortened.h"

namespace simba::mysql {
namespace {

struct Meaning {
  unsigned from, to;  // numbers, both included
  Errc code;
  std::string_view advice;
  bool breaks = false;  // the connection
};

constexpr unsigned kNoConnection = 2002, kLost = 2013, kTlsFailed = 2026;  // of libmariadb

constexpr std::string_view kUser =
    "check the user, the password (URL, password-file, MYSQL_PWD) and from which hosts the server "
    "lets this user in";
constexpr std::string_view kLockedAccount =
    "the account is locked: ALTER USER ... ACCOUNT UNLOCK, by somebody who may";
constexpr std::string_view kPlugin =
    "the server asks for an authentication plugin that libmariadb cannot use: install its plugins "
    "(Debian: libmariadb3), or ALTER USER ... IDENTIFIED VIA ed25519 or mysql_native_password";
constexpr std::string_view kUnproven =
    "the server asks for an authentication plugin that hands the password over to whoever answers, "
    "and nothing proves who does: use sslmode=verify-full (sslrootcert=FILE names the server's "
    "authority), a UNIX socket, or, of a server that has it, ALTER USER ... IDENTIFIED VIA ed25519 "
    "or "
    "WITH mysql_native_password";
constexpr std::string_view kFull =
    "the server has no connection left: raise max_connections or the user's limit, or lower "
    "connections= in the URL";
constexpr std::string_view kReadOnly =
    "the server only reads: it is a replica, or read_only is on; name the primary, or all servers "
    "one after the other in the URL";
constexpr std::string_view kNoneWrites =
    "the server only reads: it is a replica, or was the primary, and no host of the URL writes "
    "yet; the next call looks for one that does";
constexpr std::string_view kGone = "the connection was closed; whether the server acted is unknown";
constexpr std::string_view kStops = "the server stops or starts";
constexpr std::string_view kLocked =
    "somebody else held the row or the table locked; nothing was changed (SHOW ENGINE INNODB "
    "STATUS tells who)";
constexpr std::string_view kLate =
    "the statement took longer than it may: somebody else held the row or the table locked, the "
    "server is slow, or a replica does not acknowledge the commit; whether it acted is unknown";
constexpr std::string_view kChanged = "the table was changed; the next call starts anew";
constexpr std::string_view kNothing = "nothing was changed";
constexpr std::string_view kDialect =
    "the server does not understand a statement: leave dialect= out of the URL, or give it the "
    "server's (mysql is understood by both)";
constexpr std::string_view kCharset =
    "the table cannot hold every name: its character set should be utf8mb4, or its columns "
    "VARBINARY";
constexpr std::string_view kDisk = "the server's disk or memory failed or is full; see its log";
constexpr std::string_view kTls =
    "the server is not the one that TLS should prove it to be, or speaks none; give the "
    "certificate of its authority as sslrootcert=FILE in the URL, or, on a network you trust, "
    "sslmode=disable";

// The first that fits counts.
constexpr std::array kMeanings{
    Meaning{1040, 1040, Errc::kUnreachable, kFull, true},
    Meaning{1203, 1203, Errc::kUnreachable, kFull, true},
    Meaning{1226, 1226, Errc::kUnreachable, kFull, true},
    Meaning{
        number::kTooManyStatements, number::kTooManyStatements, Errc::kUnreachable,
        "the server has no prepared statement left: raise max_prepared_stmt_count (a connection "
        "has up to 5 of ours), or lower connections= in the URL"},
    Meaning{1044, 1044, Errc::kDenied, "this user may not use the database"},
    Meaning{1045, 1045, Errc::kDenied, kUser},
    Meaning{1042, 1042, Errc::kUnreachable,
            "the server cannot find out the name of this host: mend its DNS, or start it with "
            "skip_name_resolve and GRANT to the address",
            true},
    Meaning{1043, 1043, Errc::kUnreachable,
            "the server and this client did not understand each other's first words: is it a "
            "server of MySQL or MariaDB, and does no proxy cut in?",
            true},
    Meaning{1129, 1130, Errc::kDenied,
            "the server does not let this host in: GRANT to user@host, or FLUSH HOSTS after too "
            "many errors"},
    Meaning{1698, 1698, Errc::kDenied, kUser},
    Meaning{1820, 1820, Errc::kDenied, "the password has expired: set a new one"},
    Meaning{1862, 1862, Errc::kDenied, "the password has expired: set a new one"},
    Meaning{3118, 3118, Errc::kDenied, kLockedAccount},
    Meaning{3955, 3955, Errc::kDenied, kLockedAccount},
    Meaning{4151, 4151, Errc::kDenied, kLockedAccount},  // of MariaDB
    Meaning{1251, 1251, Errc::kDenied, kPlugin},
    Meaning{1275, 1275, Errc::kDenied, kPlugin},
    Meaning{1524, 1524, Errc::kDenied, kPlugin},
    Meaning{2059, 2059, Errc::kDenied, kPlugin},
    Meaning{3159, 3159, Errc::kMisconfigured,
            "the server lets nobody in without TLS: use sslmode=verify-full"},
    Meaning{1049, 1049, Errc::kMisconfigured,
            "create the database (create_mysql_table() does), or name another in the URL"},
    Meaning{1142, 1143, Errc::kDenied, "this user lacks a privilege"},
    Meaning{1227, 1227, Errc::kDenied, "this user lacks a privilege"},
    Meaning{1370, 1370, Errc::kDenied, "this user lacks a privilege"},
    Meaning{1146, 1146, Errc::kMisconfigured, "the table is missing", true},
    Meaning{1051, 1051, Errc::kMisconfigured, "the table is missing", true},
    Meaning{1364, 1364, Errc::kMisconfigured, "the table has a column that nobody fills", true},
    // Somebody altered it: a new connection looks at it anew, and says what it lacks.
    Meaning{1054, 1054, Errc::kUnreachable, kChanged, true},
    Meaning{1136, 1136, Errc::kUnreachable, kChanged, true},
    Meaning{1615, 1615, Errc::kUnreachable, kChanged, true},
    Meaning{1176, 1176, Errc::kUnreachable, kChanged, true},
    Meaning{1412, 1412, Errc::kUnreachable, kChanged, true},
    Meaning{1243, 1243, Errc::kUnreachable,
            "prepared statements do not stay with the connection: a proxy seems to be in between; "
            "name the server itself, or write dialect=mysql",
            true},
    Meaning{number::kReadOnly, number::kReadOnly, Errc::kDenied, kReadOnly, true},
    Meaning{number::kReadOnlySession, number::kReadOnlySession, Errc::kDenied, kReadOnly, true},
    Meaning{number::kReadOnlyMode, number::kReadOnlyMode, Errc::kDenied, kReadOnly, true},
    Meaning{3989, 3989, Errc::kDenied, "the database only reads: ALTER DATABASE ... READ ONLY = 0"},
    Meaning{3032, 3032, Errc::kUnreachable,
            "the server is in offline mode: its administrators alone are let in", true},
    Meaning{4081, 4082, Errc::kUnreachable,
            "the server closed the connection for its memory: raise connection_memory_limit or "
            "global_connection_memory_limit",
            true},
    Meaning{3100, 3100, Errc::kUnreachable,
            "this member of a replication group cannot commit; nothing was changed", true},
    Meaning{1047, 1047, Errc::kUnreachable,
            "this node has no quorum of its Galera cluster, or catches up with it", true},
    Meaning{1205, 1205, Errc::kTimeout, kLocked},
    Meaning{1969, 1969, Errc::kTimeout, kLate},
    Meaning{3024, 3024, Errc::kTimeout, kLate},
    Meaning{1213, 1213, Errc::kTimeout, kNothing},
    Meaning{1020, 1020, Errc::kTimeout, kNothing},
    Meaning{3101, 3101, Errc::kTimeout, kNothing},  // its group replication lost to another's write
    Meaning{4094, 4094, Errc::kTimeout, kNothing},  // the group changes its primary
    Meaning{number::kLockDeadlock, number::kLockDeadlock, Errc::kTimeout, kNothing},
    // Of KILL QUERY: the one it is for has gone, or is another user's.
    Meaning{number::kUnknownThread, number::kUnknownThread, Errc::kTimeout, kNothing},
    Meaning{number::kKillDenied, number::kKillDenied, Errc::kDenied,
            "this user may not end what another user's connection waits for"},
    Meaning{1317, 1317, Errc::kTimeout, "the statement was killed; nothing was changed"},
    Meaning{1053, 1053, Errc::kUnreachable, kStops, true},
    Meaning{1077, 1079, Errc::kUnreachable, kStops, true},
    Meaning{1152, 1152, Errc::kUnreachable, kGone, true},
    Meaning{1158, 1161, Errc::kUnreachable, kGone, true},
    Meaning{1184, 1184, Errc::kUnreachable, kGone, true},
    Meaning{1927, 1927, Errc::kUnreachable, kGone, true},
    Meaning{4031, 4031, Errc::kUnreachable, kGone, true},
    Meaning{1021, 1021, Errc::kUnreachable, kDisk},
    Meaning{1026, 1026, Errc::kUnreachable, kDisk},
    Meaning{1030, 1030, Errc::kUnreachable, kDisk},
    Meaning{1037, 1038, Errc::kUnreachable, kDisk},
    Meaning{1041, 1041, Errc::kUnreachable, kDisk},
    Meaning{1114, 1114, Errc::kUnreachable, kDisk},
    Meaning{1135, 1135, Errc::kUnreachable,
            "the server can start no thread for a connection: give its system more memory or "
            "processes (ulimit -u, TasksMax), or lower max_connections or connections= in the URL",
            true},
    Meaning{1180, 1180, Errc::kUnreachable,
            "the server could not commit, so that whether it acted is unknown; see its log", true},
    Meaning{1206, 1206, Errc::kUnreachable,
            "the server has no memory left for locks on rows; nothing was changed: raise "
            "innodb_buffer_pool_size, or end who locks so many"},
    Meaning{1637, 1637, Errc::kUnreachable,
            "the server has no place for another transaction that writes; nothing was changed: end "
            "those that stay open (information_schema.INNODB_TRX tells whose they are)"},
    Meaning{1153, 1153, Errc::kMisconfigured,
            "the server's max_allowed_packet is too small for a batch: give it 1 MB or more", true},
    Meaning{1665, 1665, Errc::kMisconfigured,
            "the server logs statements (binlog_format=STATEMENT), which cannot repeat what a "
            "clock decided: set binlog_format to MIXED or ROW"},
    Meaning{1064, 1064, Errc::kMisconfigured, kDialect, true},
    Meaning{1193, 1193, Errc::kMisconfigured, kDialect, true},
    Meaning{1264, 1264, Errc::kCorrupt, "a number in the row is at the end of its range"},
    Meaning{1690, 1690, Errc::kCorrupt, "a number in the row is at the end of its range"},
    Meaning{1366, 1366, Errc::kMisconfigured, kCharset},
    Meaning{1977, 1977, Errc::kMisconfigured, kCharset},
    Meaning{1406, 1406, Errc::kMisconfigured, "a column of the table is too short", true},
    Meaning{5010, 5010, Errc::kDenied, kUnproven, true},
    Meaning{2026, 2026, Errc::kMisconfigured, kTls, true},
    Meaning{2002, 2005, Errc::kUnreachable, "the server cannot be reached", true},
    Meaning{2000, 2999, Errc::kUnreachable, kGone, true},  // of libmariadb
    Meaning{5000, 5999, Errc::kUnreachable, kGone, true},
    Meaning{0, ~0U, Errc::kCorrupt, "this was not expected of the server", true},
};

// Within TLS libmariadb has one number for a certificate that proves nothing, for a file that is
// not there, and for a connection that ended: of a call that failed in the kernel it tells the
// number, "... (104)", and of the other end that has gone OpenSSL or GnuTLS say so.
bool is_cut(unsigned number, std::string_view text) {
  constexpr std::array kOfTheNetwork{EPIPE,      ENETDOWN, ENETUNREACH, ECONNABORTED,
                                     ECONNRESET, ENOTCONN, ETIMEDOUT,   EHOSTUNREACH};
  if (number != kTlsFailed) return false;
  return std::any_of(kOfTheNetwork.begin(), kOfTheNetwork.end(),
                     [&](int each) { return text.ends_with('(' + std::to_string(each) + ')'); }) ||
         text.find("unexpected eof") != text.npos ||
         text.find("non-properly terminated") != text.npos;
}

const Meaning& meaning_of(unsigned number) {
  return *std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& each) {
    return number >= each.from && number <= each.to;
  });
}

// What comes before TLS may be anybody's word, and libmariadb hands it on as a text alone, "...
// cannot be verified: 1040 - Too many connections". It is good for advice, where it says what such
// an end is anyway: out of reach.
unsigned told_before_tls(unsigned number, std::string_view text) {
  constexpr std::string_view kUnverified = "cannot be verified: ";
  const std::size_t at = text.find(kUnverified);
  if (number != kNoConnection || at == text.npos) return number;
  const std::string_view its = text.substr(at + kUnverified.size());
  unsigned told = 0;
  std::from_chars(its.data(), its.data() + its.size(), told);
  return meaning_of(told).code == Errc::kUnreachable ? told : number;
}

bool is_read_only(unsigned number) {
  return number == number::kReadOnly || number == number::kReadOnlySession ||
         number == number::kReadOnlyMode;
}

std::string in_parentheses(unsigned number, const std::string& text) {
  return " (" + kit::shortened(text) + ", error " + std::to_string(number) + ')';
}

std::string advice_of(unsigned number, const Endpoint& endpoint) {
  std::string advice(meaning_of(number).advice);
  if (number == number::kTableDenied || number == number::kMissingTable ||
      number == number::kDatabaseDenied) {
    advice += ": as an administrator, run GRANT SELECT, INSERT, UPDATE ON " +
              endpoint.quoted_table() +
              " TO the user (observers: SELECT alone); docs/mysql.md has the CREATE TABLE";
  }
  return advice;
}

}  // namespace

bool Failure::is_locked() const noexcept {
  return is(number::kLockWait) || is(number::kStatementTime) || is(number::kSelectTime);
}

bool Failure::is_read_only() const noexcept { return mysql::is_read_only(number_); }

Failure failure(unsigned number, const std::string& text, const Endpoint& endpoint) {
  if (is_cut(number, text)) number = kLost;
  // In the midst of a failover: whoever waits for the mutex waits for that too.
  if (is_read_only(number) && endpoint.has_several_hosts()) {
    return {Errc::kUnreachable,
            "mysql at " + endpoint.where() + ": " + std::string(kNoneWrites) +
                in_parentheses(number, text),
            number};
  }
  return {meaning_of(number).code,
          "mysql at " + endpoint.where() + ": " + advice_of(number, endpoint) +
              in_parentheses(number, text),
          number};
}

Failure connect_failure(unsigned number, const std::string& text, const Endpoint& endpoint) {
  if (is_cut(number, text)) {
    return {Errc::kUnreachable,
            "mysql at " + endpoint.where() +
                ": cannot connect: the connection ended before TLS had begun: the server stops or "
                "starts, or speaks none" +
                in_parentheses(number, text),
            number};
  }
  return {meaning_of(number).code,
          "mysql at " + endpoint.where() + ": cannot connect: " +
              advice_of(told_before_tls(number, text), endpoint) + in_parentheses(number, text),
          number};
}

bool breaks_connection(unsigned number) { return meaning_of(number).breaks; }

}  // namespace simba::mysql
