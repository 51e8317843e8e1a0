#include "stores/postgres/failure.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "stores/kit/shortened.h"

namespace simba::postgres {
namespace {

struct Meaning {
  std::string_view state;  // all of it, or the class it begins with
  Errc code;
  std::string_view advice;
};

constexpr std::string_view kAgain = "nothing was changed";
constexpr std::string_view kRoleAdvice =
    "check the user, the password (URL, PGPASSWORD, ~/.pgpass) and the server's pg_hba.conf";
constexpr std::string_view kReadOnly =
    "the server only reads: it is a standby, or default_transaction_read_only is on; name the "
    "primary, or all servers with target_session_attrs=read-write";
constexpr std::string_view kGone = "the connection was closed; whether the server acted is unknown";

// The first that fits counts.
constexpr std::array kMeanings{
    Meaning{"28P01", Errc::kDenied, kRoleAdvice},
    Meaning{"28", Errc::kDenied, kRoleAdvice},
    Meaning{"3D000", Errc::kMisconfigured, "create the database, or name another in the URL"},
    Meaning{"3F000", Errc::kMisconfigured,
            "create the schema, or name another in the URL's table=schema.table"},
    Meaning{"42501", Errc::kDenied, "this role lacks a privilege"},
    Meaning{"42P01", Errc::kMisconfigured, "the table is missing"},
    Meaning{"42703", Errc::kMisconfigured,
            "the table lacks a column; an old one may need ALTER TABLE ... ADD COLUMN "
            "fencing_token bigint NOT NULL DEFAULT 0 (see docs/postgres.md)"},
    Meaning{"42804", Errc::kMisconfigured, "a column of the table has another type"},
    Meaning{"42883", Errc::kMisconfigured, "a column of the table has another type"},
    Meaning{SqlState::kReadOnly, Errc::kDenied, kReadOnly},
    Meaning{"53300", Errc::kUnreachable,
            "the server has no connection left: raise max_connections, lower connections= in the "
            "URL, or put a pooler in between"},
    Meaning{"53100", Errc::kUnreachable, "the server's disk is full; nothing was changed"},
    Meaning{"53", Errc::kUnreachable, "the server lacks memory or room"},
    // A claim notifies nobody, so that only releases and evictions hear it.
    Meaning{
        "54000", Errc::kUnreachable,
        "nothing was changed: a limit of the server was met, most likely that its queue of "
        "notifications is full. A session that listens and leaves its transaction open holds it "
        "up: SELECT pg_notification_queue_usage() tells how full, SELECT pid, xact_start FROM "
        "pg_stat_activity ORDER BY xact_start tells who; let that transaction end, or end it by "
        "pg_terminate_backend()"},
    Meaning{"55P03", Errc::kTimeout,
            "somebody else held a lock on the row or the table; nothing was changed (pg_locks "
            "tells who)"},
    Meaning{"57014", Errc::kTimeout, "the server cancelled the statement; nothing was changed"},
    Meaning{"40", Errc::kTimeout, kAgain},
    Meaning{"57P", Errc::kUnreachable, "the server stops, starts or recovers"},
    Meaning{"58", Errc::kUnreachable, "the server's disk or system failed; see its log"},
    Meaning{"08", Errc::kUnreachable, kGone},
    // A pooler gave us another server connection, or somebody changed the table.
    Meaning{"26000", Errc::kUnreachable,
            "prepared statements do not stay with the connection: a pooler seems to be in "
            "between, write pooler=transaction in the URL"},
    Meaning{"42P05", Errc::kUnreachable,
            "prepared statements do not stay with the connection: a pooler seems to be in "
            "between, write pooler=transaction in the URL"},
    Meaning{"0A000", Errc::kUnreachable, "the table was changed; the next call starts anew"},
    Meaning{"23", Errc::kMisconfigured, "the table has a constraint of its own that forbids it"},
    Meaning{"", Errc::kCorrupt, "this was not expected of the server"},
};

const Meaning& meaning_of(std::string_view state) {
  return *std::find_if(kMeanings.begin(), kMeanings.end(),
                       [&](const Meaning& each) { return state.starts_with(each.state); });
}

// Without the places in libpq's and the server's source.
std::string in_short(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with("LOCATION:")) continue;
    if (!out.empty()) out += "; ";
    for (const char c : line) {
      if (c != ' ' || out.empty() || out.back() != ' ') out += c;
    }
  }
  return kit::shortened(out);
}

std::string_view field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text != nullptr ? std::string_view(text) : std::string_view{};
}

// "FATAL:  28P01: password authentication failed": empty where the server did not speak.
std::string_view state_in(std::string_view text) {
  constexpr std::size_t kLength = 5;
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  for (std::size_t at = text.find(":  "); at != text.npos; at = text.find(":  ", at + 1)) {
    const std::string_view state = text.substr(at + 3, kLength);
    const bool ends = text.substr(std::min(at + 3 + kLength, text.size())).starts_with(": ");
    if (ends && std::all_of(state.begin(), state.end(), fits)) return state;
  }
  return {};
}

bool speaks_of_tls(std::string_view text) {
  return text.find("certificate") != text.npos || text.find("SSL") != text.npos;
}

}  // namespace

std::string_view sql_state(const PGresult* result) { return field(result, PG_DIAG_SQLSTATE); }

Failure failure(const PGresult* result, const std::string& where, const std::string& table) {
  return server_failure(sql_state(result), field(result, PG_DIAG_MESSAGE_PRIMARY), where, table);
}

Failure server_failure(std::string_view state, std::string_view text, const std::string& where,
                       const std::string& table) {
  const Meaning& meaning = meaning_of(state);
  std::string what = "postgres at " + where + ": " + std::string(meaning.advice);
  if (state == SqlState::kMissingTable || state == "42501") {
    what += ": " + grant_advice(table, "THE_ROLE");
  }
  what += " (" + in_short(text) + ", SQLSTATE " + kit::shortened(state) + ')';
  return {meaning.code, what, state};
}

Error connect_failure(const std::string& text, const std::string& where) {
  const std::string_view state = state_in(text);
  const std::string start = "postgres at " + where + ": cannot connect: ";
  if (!state.empty()) {
    const Meaning& meaning = meaning_of(state);
    return {meaning.code, start + std::string(meaning.advice) + " (" + in_short(text) + ')'};
  }
  if (speaks_of_tls(text)) {
    return {Errc::kMisconfigured,
            start +
                "the server is not the one that TLS should prove it to be; give the certificate of "
                "its authority as sslrootcert=FILE in the URL, or, on a network you trust, "
                "sslmode=disable (" +
                in_short(text) + ')'};
  }
  return {Errc::kUnreachable, start + in_short(text)};
}

Error lost(const PGconn* connection, const std::string& where) {
  return {Errc::kUnreachable, "postgres at " + where + ": " + std::string(kGone) + " (" +
                                  in_short(PQerrorMessage(connection)) + ')'};
}

bool breaks_connection(std::string_view state) {
  // One that only reads: after a failover a new connection may find the primary.
  return state.empty() || state == SqlState::kReadOnly || state == "26000" || state == "42P05" ||
         state == "0A000" || state.starts_with("57P") || state.starts_with("08");
}

std::string grant_advice(const std::string& table, const std::string& role) {
  return "as its owner, run GRANT SELECT, INSERT, UPDATE ON " + table + " TO " + role +
         " (observers: SELECT alone); docs/postgres.md has the CREATE TABLE";
}

}  // namespace simba::postgres
