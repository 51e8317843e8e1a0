#include "stores/zookeeper/failure.h"

#include <zookeeper/zookeeper.h>

namespace simba::zookeeper {
namespace {

struct Meaning {
  Errc code;
  const char* advice;
};

Meaning meaning_of(int code) {
  switch (code) {
    case ZCONNECTIONLOSS:
    case ZCLOSING:
    case ZINVALIDSTATE:
      return {Errc::kUnreachable, "the connection was lost; whether the server acted is unknown"};
    case ZOPERATIONTIMEOUT:
      return {Errc::kTimeout, "no answer in time; whether the server acted is unknown"};
    case ZSESSIONEXPIRED:
      return {Errc::kUnreachable, "the session has ended on the server; a new one is being made"};
    case ZSESSIONMOVED:
      return {Errc::kUnreachable, "the session has moved to another server"};
    case ZNOTREADONLY:
      return {Errc::kUnreachable, "this server has no quorum and only reads"};
    case ZNOAUTH:
      return {Errc::kDenied,
              "the ACL of the node does not allow it; check user, password and ACLs"};
    case ZAUTHFAILED:
      return {Errc::kDenied, "the server refused the credentials; check user and password"};
    case ZINVALIDACL:
      return {Errc::kMisconfigured, "an acl of creator or creator-read needs user and password"};
    case ZBADARGUMENTS:
      return {Errc::kMisconfigured, "the server refuses the path"};
    case ZNONODE:
      return {Errc::kMisconfigured, "a node is missing; make the chroot of the URL first"};
    case ZNOCHILDRENFOREPHEMERALS:
      return {Errc::kMisconfigured, "the node above is ephemeral; something else uses this path"};
    case ZUNIMPLEMENTED:
      return {Errc::kMisconfigured, "the server knows no container nodes: it is older than 3.5"};
    case ZAPIERROR:
    case ZSYSTEMERROR:
      return {Errc::kUnreachable, "the server failed; see its log"};
    default:
      return {Errc::kCorrupt, "the answer makes no sense here"};
  }
}

}  // namespace

Error failure(int code, const std::string& doing, const std::string& where) {
  const Meaning meaning = meaning_of(code);
  return {meaning.code, "zookeeper at " + where + ": cannot " + doing + ": " + meaning.advice +
                            " (" + zerror(code) + ", code " + std::to_string(code) + ')'};
}

bool is_ambiguous(int code) {
  switch (code) {
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
    case ZMARSHALLINGERROR:  // it was answered, but nobody understood what
      return true;
    default:
      return false;
  }
}

}  // namespace simba::zookeeper
