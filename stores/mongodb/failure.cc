#include "stores/mongodb/failure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "stores/kit/shortened.h"
#include "stores/mongodb/document.h"

namespace simba::mongodb {
namespace {

struct Meaning {
  int number;
  Errc code;
  std::string_view advice;
};

constexpr std::string_view kNotPrimary =
    "this server is not the primary (any more); whether it acted is unknown";
constexpr std::string_view kAmbiguous =
    "the write was not confirmed by a majority in time; whether it lasts is unknown";
constexpr std::string_view kLimit = "the server gave up at the deadline";
constexpr std::string_view kStops = "the server stops, starts or recovers";
constexpr std::string_view kBusy =
    "the server had no room for the command, or was told to end it; whether it acted is unknown";

constexpr std::array kMeanings{
    Meaning{6, Errc::kUnreachable, "the server could not reach another one"},
    Meaning{7, Errc::kUnreachable, "the server could not find another one"},
    Meaning{11, Errc::kDenied, "the user is not known: check the URI and authSource"},
    Meaning{ServerCode::kUnauthorized, Errc::kDenied,
            "this user lacks a privilege: docs/mongodb.md has the role (find, insert, update on "
            "the collection; find alone to observe; changeStream to be woken)"},
    Meaning{ServerCode::kAuthenticationFailed, Errc::kDenied,
            "authentication failed: check the user, the password and authSource in the URI"},
    Meaning{24, Errc::kTimeout, kBusy},
    Meaning{26, Errc::kMisconfigured, "the collection is missing"},
    Meaning{46, Errc::kTimeout, kBusy},
    Meaning{50, Errc::kTimeout, kLimit},
    Meaning{64, Errc::kTimeout, kAmbiguous},
    Meaning{79, Errc::kMisconfigured, "the server does not know this write concern"},
    Meaning{89, Errc::kUnreachable, "the server had a network timeout"},
    Meaning{91, Errc::kUnreachable, kStops},
    Meaning{94, Errc::kUnreachable, kStops},
    Meaning{100, Errc::kUnreachable,
            "the write concern cannot be met: too few members of the set hold data"},
    Meaning{112, Errc::kTimeout, "somebody else wrote the document at the same time"},
    Meaning{121, Errc::kMisconfigured, "the collection has a validator that forbids it"},
    Meaning{134, Errc::kUnreachable, kStops},
    Meaning{148, Errc::kMisconfigured,
            "the server runs with enableMajorityReadConcern: false, and cannot tell what lasts"},
    Meaning{175, Errc::kTimeout, kBusy},
    Meaning{189, Errc::kUnreachable, kNotPrimary},
    Meaning{202, Errc::kTimeout, kLimit},
    Meaning{208, Errc::kTimeout, kBusy},
    Meaning{211, Errc::kUnreachable, kStops},
    Meaning{215, Errc::kTimeout, kBusy},
    Meaning{216, Errc::kUnreachable, kNotPrimary},
    Meaning{237, Errc::kTimeout, kBusy},
    Meaning{239, Errc::kTimeout, kBusy},
    Meaning{246, Errc::kTimeout, kBusy},
    Meaning{262, Errc::kTimeout, kLimit},
    Meaning{264, Errc::kTimeout, kBusy},
    Meaning{267, Errc::kTimeout, kBusy},
    Meaning{314, Errc::kTimeout, kBusy},
    Meaning{355, Errc::kTimeout, kBusy},
    Meaning{365, Errc::kTimeout, kBusy},
    Meaning{371, Errc::kUnreachable, "an administrator has blocked writes"},
    Meaning{402, Errc::kTimeout, kBusy},
    Meaning{433, Errc::kTimeout, kBusy},
    Meaning{449, Errc::kTimeout, kBusy},
    Meaning{9001, Errc::kUnreachable, "the server lost a connection"},
    Meaning{10058, Errc::kUnreachable, kNotPrimary},
    Meaning{10107, Errc::kUnreachable, kNotPrimary},
    Meaning{11600, Errc::kUnreachable, kStops},
    Meaning{11601, Errc::kTimeout, kBusy},
    Meaning{11602, Errc::kUnreachable, kNotPrimary},
    Meaning{13388, Errc::kUnreachable, "the router's view of the cluster is old"},
    Meaning{13435, Errc::kUnreachable, kNotPrimary},
    Meaning{13436, Errc::kUnreachable, kNotPrimary},
    Meaning{14031, Errc::kUnreachable, "the server's disk is full"},
};

std::string start(const std::string& where) { return "mongodb at " + where + ": "; }

bool is_denial(const bson_error_t& error) {
  return error.domain == MONGOC_ERROR_CLIENT && error.code == MONGOC_ERROR_CLIENT_AUTHENTICATE;
}

// It comes before a greeting that could be looked at.
bool has_no_common_version(const bson_error_t& error) {
  return error.domain == MONGOC_ERROR_PROTOCOL &&
         error.code == MONGOC_ERROR_PROTOCOL_BAD_WIRE_VERSION;
}

}  // namespace

// A handshake that was cut off or took too long begins with the same words, and may succeed the
// next time.
bool is_unproven(std::string_view text) {
  constexpr std::array kSigns{std::string_view("certificate verif"),
                              std::string_view("initialize TLS state"), kNoTls};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return text.find(sign) != text.npos; });
}

Failure unproven(const std::string& text, const std::string& where) {
  return {Errc::kMisconfigured,
          start(where) +
              "the server is not the one that TLS should prove it to be: give the "
              "certificate of its authority as tlsCAFile=FILE in the URI (" +
              kit::shortened(text) + ')',
          0};
}

Failure server_failure(int code, const std::string& text, const std::string& where) {
  const auto* const it = std::find_if(kMeanings.begin(), kMeanings.end(),
                                      [&](const Meaning& each) { return each.number == code; });
  const std::string said = " (" + kit::shortened(text) + ", code " + std::to_string(code) + ')';
  if (it == kMeanings.end()) {
    return {Errc::kCorrupt, start(where) + "this was not expected of the server" + said, code};
  }
  return {it->code, start(where) + std::string(it->advice) + said, code};
}

Failure failure(const bson_error_t& error, const bson_t* reply, const std::string& where) {
  if (const auto code = reply ? number_in(reply, "code") : std::nullopt) {
    return server_failure(static_cast<int>(*code), error.message, where);
  }
  if (is_denial(error)) {
    return {Errc::kDenied,
            start(where) +
                "authentication failed: check the user, the password and authSource in "
                "the URI (" +
                error.message + ')',
            ServerCode::kAuthenticationFailed};
  }
  if (has_no_common_version(error)) {
    return {Errc::kMisconfigured,
            start(where) +
                "the driver and the server are of too different age; MongoDB 4.2 or newer is "
                "needed, and a driver that knows it (" +
                error.message + ')',
            0};
  }
  if (is_unproven(error.message)) return unproven(error.message, where);
  return {Errc::kUnreachable,
          start(where) + "whether the server acted is unknown (" + error.message + ')', 0};
}

void check_version(const bson_t* hello, const std::string& where) {
  constexpr std::int64_t kWireVersion42 = 8;
  const std::int64_t wire_version = number_in(hello, "maxWireVersion").value_or(0);
  if (wire_version >= kWireVersion42) return;
  throw Error(Errc::kMisconfigured,
              start(where) + "the server speaks wire version " + std::to_string(wire_version) +
                  "; MongoDB 4.2 (wire version 8) or newer is needed, which can decide an update "
                  "by its own clock");
}

void check_greeting(const bson_t* hello, const std::string& where) {
  if (text_in(hello, "msg") == "isdbgrid") {
    throw Error(Errc::kMisconfigured,
                start(where) +
                    "this is mongos, a router of a sharded cluster; each router would decide by "
                    "its own clock, and two owners were possible: name the members of a replica "
                    "set");
  }
  check_version(hello, where);
  bson_iter_t at;
  const bool is_primary = bson_iter_init_find(&at, hello, "ismaster") && bson_iter_as_bool(&at);
  if (is_primary) return;
  throw Error(Errc::kUnreachable,
              start(where) +
                  "this server is not the primary: what it knows is old; where the URI names it "
                  "alone, name the replica set and its members (replicaSet=NAME, and no "
                  "directConnection)");
}

bool breaks_connection(const Failure& failure) {
  return failure.server_code() == 0 || failure.errc() == Errc::kUnreachable ||
         failure.errc() == Errc::kDenied;
}

}  // namespace simba::mongodb
