#include "stores/redis/failure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "stores/kit/shortened.h"

namespace simba::redis {
namespace {

struct Meaning {
  std::string_view word;
  Errc code;
  std::string_view advice;
};

constexpr std::string_view kWait = "nothing was changed";

// By the word, which the server's protocol fixes.
constexpr std::array kMeanings{
    Meaning{"NOAUTH", Errc::kDenied,
            "the server wants a password: write redis://user:password@host, or password-file=FILE"},
    Meaning{"WRONGPASS", Errc::kDenied, "the user or the password is wrong"},
    Meaning{"NOPERM", Errc::kDenied, "this user lacks a right, and ACL LOG tells which"},
    Meaning{"READONLY", Errc::kDenied,
            "the server only reads: it is a replica. Name the master, or let sentinels find it "
            "(redis+sentinel://)"},
    Meaning{"MOVED", Errc::kMisconfigured, "this is a cluster: write redis+cluster://"},
    Meaning{"ASK", Errc::kUnreachable,
            "the slot is on its way to another node; nothing was changed"},
    Meaning{"CROSSSLOT", Errc::kMisconfigured, "the names of one mutex are in different slots"},
    Meaning{"CLUSTERDOWN", Errc::kUnreachable, "the cluster does not serve this slot now"},
    Meaning{"TRYAGAIN", Errc::kUnreachable, "the slot is on its way to another node"},
    Meaning{"MASTERDOWN", Errc::kUnreachable, "the replica has lost its master"},
    Meaning{"UNBLOCKED", Errc::kUnreachable, "the server has become a replica"},
    Meaning{"LOADING", Errc::kUnreachable, "the server still loads its data"},
    Meaning{"BUSY", Errc::kUnreachable, "a script of somebody keeps the server busy"},
    Meaning{"OOM", Errc::kUnreachable,
            "the server's memory is full (maxmemory); nothing was changed"},
    Meaning{"MISCONF", Errc::kUnreachable,
            "the server cannot write its snapshot and takes no writes; see its log"},
    Meaning{"NOREPLICAS", Errc::kUnreachable,
            "too few replicas are connected (min-replicas-to-write)"},
    Meaning{"WRONGTYPE", Errc::kCorrupt, "a key of ours holds something that is not ours"},
    Meaning{"CORRUPT", Errc::kCorrupt, "a key of ours holds what cannot be"},
    Meaning{"NOSCRIPT", Errc::kUnreachable, kWait},
    Meaning{"NOPROTO", Errc::kMisconfigured, "the server is too old; 6.2 is the oldest that works"},
};

// The first; up to Redis 6.2, where a script met the error, that of the script's line.
std::string_view word_of(std::string_view text) {
  if (text.starts_with("ERR Error running script")) {
    constexpr std::string_view kBefore = ": -";
    if (const std::size_t at = text.rfind(kBefore); at != text.npos) {
      text.remove_prefix(at + kBefore.size());
    }
  }
  return text.substr(0, text.find(' '));
}

const Meaning* find_meaning(std::string_view word) {
  const auto* const it = std::find_if(kMeanings.begin(), kMeanings.end(),
                                      [&](const Meaning& each) { return each.word == word; });
  return it == kMeanings.end() ? nullptr : it;
}

const Meaning& meaning_of(std::string_view text) {
  static constexpr Meaning kOther{"", Errc::kCorrupt, "this was not expected of the server"};
  static constexpr Meaning kOld{"", Errc::kMisconfigured,
                                "the server does not know a command; 6.2 is the oldest that works"};
  if (const Meaning* known = find_meaning(word_of(text))) return *known;
  if (text.find("unknown command") != text.npos) return kOld;
  if (text.find("The user executing the script") != text.npos) return *find_meaning("NOPERM");
  return kOther;
}

// Among the answers to AUTH are some without a word of their own: of Redis 6 and newer, and of what
// is older, as some proxies are.
const Meaning& meaning_of_login(std::string_view text) {
  static constexpr std::string_view kNoPassword =
      "the server has no password: leave it out of the URL, or give it one";
  // By what they begin with.
  static constexpr std::array kAnswers{
      Meaning{"ERR AUTH <password> called without any password configured", Errc::kDenied,
              kNoPassword},
      Meaning{"ERR Client sent AUTH, but no password is set", Errc::kDenied, kNoPassword},
      Meaning{"ERR invalid password", Errc::kDenied, "the password is wrong"},
      Meaning{"ERR wrong number of arguments for 'auth'", Errc::kDenied,
              "the server knows no users: write redis://:password@host"},
  };
  const auto* const it = std::find_if(kAnswers.begin(), kAnswers.end(), [&](const Meaning& each) {
    return text.starts_with(each.word);
  });
  if (it != kAnswers.end()) return *it;
  return meaning_of(text);
}

}  // namespace

Error failure(const Reply& error, const std::string& where) {
  const Meaning& meaning = meaning_of(error.text);
  std::string what = where + ": " + std::string(meaning.advice);
  if (meaning.word == "NOPERM") what += ": " + acl_advice();
  return {meaning.code, what + " (" + kit::shortened(error.text) + ')'};
}

Error sentinel_failure(const Reply& error, const std::string& where) {
  const Meaning& meaning = meaning_of(error.text);
  const auto advise = [&](const std::string& advice) {
    return Error(meaning.code, where + ": " + advice + " (" + kit::shortened(error.text) + ')');
  };
  if (meaning.word == "NOAUTH") {
    return advise(
        "it wants a password: write sentinel-password-file=FILE and, where it knows users, "
        "sentinel-user=NAME");
  }
  if (meaning.word == "NOPERM") {
    return advise(
        "this user of the sentinel lacks a right: as an administrator, run ACL SETUSER NAME "
        "+sentinel|get-master-addr-by-name there");
  }
  return failure(error, where);
}

Error login_failure(const Reply& error, const std::string& where) {
  const Meaning& meaning = meaning_of_login(error.text);
  return {meaning.code, where + ": " + std::string(meaning.advice) +
                            " (the answer to AUTH, which is not repeated: it may hold the "
                            "password; does the server have a password for this user?)"};
}

std::optional<Error> refusal(const Reply& reply, const std::string& where) {
  if (!reply.is_error()) return std::nullopt;
  if (reply.is_error("DENIED")) {
    return Error(Errc::kDenied,
                 where +
                     ": the server is in protected mode, and lets in nobody from another machine "
                     "as long as it has no password: give it one (requirepass, or ACL SETUSER), "
                     "and write it into the URL");
  }
  if (reply.text.starts_with("ERR max number of clients")) {
    return Error(Errc::kUnreachable,
                 where +
                     ": the server has as many clients as it may have (maxclients); nothing was "
                     "changed");
  }
  return std::nullopt;
}

bool wants_another_server(const Reply& error) {
  constexpr std::array<std::string_view, 5> kWords{"READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED",
                                                   "CLUSTERDOWN"};
  return error.is_error() &&
         std::find(kWords.begin(), kWords.end(), word_of(error.text)) != kWords.end();
}

namespace {

// Each by its name: categories hold what stops a server, as CLIENT PAUSE and SCRIPT FLUSH do.
constexpr std::string_view kContender =
    "ACL SETUSER contender on >PASSWORD ~simba:* &simba:* +ping +select +client|setname "
    "+script|load +eval +evalsha +eval_ro +evalsha_ro +time +info +role +wait +get +mget +exists "
    "+pttl +scan +set +del +pexpire +zadd +zrem +zscore +zrandmember +zpopmin +publish +subscribe "
    "+unsubscribe +pubsub|numsub";
constexpr std::string_view kObserver =
    "ACL SETUSER observer on >PASSWORD %R~simba:* &simba:* +ping +select +client|setname +eval_ro "
    "+evalsha_ro +time +info +role +mget +pttl +scan +subscribe +unsubscribe";
constexpr std::string_view kInACluster = "+cluster|slots +asking";

std::string acl(std::string_view rights, RedisOptions::Topology topology) {
  std::string all(rights);
  if (topology == RedisOptions::Topology::kCluster) all.append(1, ' ').append(kInACluster);
  return all;
}

}  // namespace

std::string contender_acl(RedisOptions::Topology topology) { return acl(kContender, topology); }
std::string observer_acl(RedisOptions::Topology topology) { return acl(kObserver, topology); }

std::string acl_advice() {
  return "as an administrator, run " + std::string(kContender) + ", in a cluster with " +
         std::string(kInACluster) + " besides; docs/redis.md has what observers need";
}

}  // namespace simba::redis
