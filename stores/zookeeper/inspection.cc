#include <future>
#include <random>

#include "stores/zookeeper/administration.h"
#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/session.h"
#include "stores/zookeeper/zookeeper_options.h"

namespace simba::zookeeper {
namespace {

using Verdict = Finding::Verdict;

constexpr milliseconds kPatience{10'000};

// The code of one answer.
template <class Request>
int answer_to(Request request) {
  const auto answer = std::make_shared<std::promise<int>>();
  std::future<int> came = answer->get_future();
  request([answer](int code) { answer->set_value(code); });
  return came.wait_for(kPatience) == std::future_status::ready ? came.get() : ZOPERATIONTIMEOUT;
}

// An ephemeral node, as contenders make them; gone again at once, or with the session.
Finding try_rights(Session& session, Handle& handle) {
  const std::string node =
      session.base() + "/simba-doctor-" + std::to_string(std::random_device{}());
  const int made = answer_to([&](const Handle::Done& done) {
    handle.create(node, {}, session.acl(), ZOO_EPHEMERAL,
                  [done](int code, const std::string&, const Stat&) { done(code); });
  });
  const int removed =
      made == ZOK ? answer_to([&](const Handle::Done& done) { handle.remove(node, done); }) : ZOK;
  if (made == ZOK && removed == ZOK) return {"rights", Verdict::kOk, "may contend"};
  const Error error =
      made != ZOK ? failure(made, "create a node below " + session.base(), session.where())
                  : failure(removed, "delete a node below " + session.base(), session.where());
  return {"rights", Verdict::kFailed, std::string("may not contend: ") + error.what()};
}

}  // namespace

Inspection inspect(std::string_view url) {
  const ZookeeperOptions options = zookeeper_options(url);
  check_options(options);
  const Connection connection(options);
  Session& session = *connection.session();
  const auto handle = session.connected(BootClock::now() + kPatience);
  Inspection seen;
  seen.findings.push_back({"server", Verdict::kOk,
                           "ZooKeeper at " + options.servers + options.chroot +
                               ", session timeout " + std::to_string(handle->timeout().count()) +
                               " ms, asked for " + std::to_string(options.session_timeout.count()) +
                               " ms"});
  const int there =
      answer_to([&](const Handle::Done& done) { handle->exists(session.base(), done); });
  if (there != ZOK) {
    // Where mutexes come and go it goes with the last of them.
    seen.findings.push_back({"node", Verdict::kWarning,
                             session.base() + " is not there: the first claim makes it if it may, "
                                              "or simba init does"});
    return seen;
  }
  seen.findings.push_back({"node", Verdict::kOk, session.base() + " is there"});
  seen.findings.push_back(try_rights(session, *handle));
  return seen;
}

}  // namespace simba::zookeeper
