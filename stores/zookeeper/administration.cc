#include "stores/zookeeper/administration.h"

#include <future>

#include "stores/zookeeper/failure.h"
#include "stores/zookeeper/session.h"
#include "stores/zookeeper/zookeeper_options.h"

namespace simba::zookeeper {
namespace {

constexpr milliseconds kPatience{15'000};

// "/a", "/a/b", ... of "/a/b": what has to be there.
std::vector<std::string> nodes_of(const ZookeeperOptions& options) {
  const std::string path = options.chroot + options.base;
  std::vector<std::string> nodes;
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    nodes.push_back(path.substr(0, slash));
  nodes.push_back(path);
  return nodes;
}

std::string acl_text(const ZookeeperOptions& options) {
  using Acl = ZookeeperOptions::Acl;
  Acl acl = options.acl;
  if (acl == Acl::kAutomatic) acl = options.user.empty() ? Acl::kOpen : Acl::kCreatorRead;
  if (acl == Acl::kOpen) return "world:anyone:cdrwa";
  return std::string("auth::cdrwa") + (acl == Acl::kCreatorRead ? ",world:anyone:r" : "");
}

std::string told(const ZookeeperOptions& options) {
  std::string text = "# For zkCli.sh; containers of mutexes come with claims.\n";
  if (!options.user.empty()) text += "addauth digest " + options.user + ":PASSWORD\n";
  for (const std::string& node : nodes_of(options)) {
    text += "create " + node + " \"\" " + acl_text(options) + '\n';
  }
  return text +
         "# A contender needs create, delete and read there and below; simba release, write too.\n"
         "# Who only looks (ls, show, watch) needs read.\n";
}

// True: it was not there.
bool make(Session& session, Handle& handle, const std::string& node) {
  const auto answer = std::make_shared<std::promise<int>>();
  std::future<int> came = answer->get_future();
  handle.create(node, {}, session.acl(), ZOO_PERSISTENT,
                [answer](int code, const std::string&, const Stat&) { answer->set_value(code); });
  if (came.wait_for(kPatience) != std::future_status::ready) {
    throw failure(ZOPERATIONTIMEOUT, "create " + node, session.where());
  }
  const int code = came.get();
  if (code != ZOK && code != ZNODEEXISTS) throw failure(code, "create " + node, session.where());
  return code == ZOK;
}

}  // namespace

Preparation prepare(std::string_view url, Prepare how) {
  const ZookeeperOptions options = zookeeper_options(url);
  check_options(options);
  const std::string path = options.chroot + options.base;
  if (how == Prepare::kTell) return {told(options), "these make the node " + path};
  ZookeeperOptions whole = options;  // the chroot may be what is missing
  whole.chroot.clear();
  whole.base = path;
  const Connection connection(whole);
  const auto handle = connection.session()->connected(BootClock::now() + kPatience);
  std::string made;
  for (const std::string& node : nodes_of(options)) {
    if (!make(*connection.session(), *handle, node)) continue;
    made += "create " + node + " \"\" " + acl_text(options) + '\n';
  }
  return {made, "the node " + path + (made.empty() ? " was there already" : " is made")};
}

}  // namespace simba::zookeeper
