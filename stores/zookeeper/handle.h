#pragma once

#include <zookeeper/zookeeper.h>

#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "simba/time.h"
#include "stores/kit/this_process.h"

namespace simba::zookeeper {

// The driver: one session, its two threads, and the requests we make of it.
//
// Each request is sent at once and answered on the driver's thread, or on the caller's where it
// cannot even be sent; requests of one handle are carried out in the order they were made. A `done`
// may make further requests, and must not block.
//
// Threads: any, but for close(), which is not called from a `done` or an event.
class Handle {
 public:
  struct Events {
    std::function<void(int state)> on_state;                 // ZOO_CONNECTED_STATE and its like
    std::function<void(const std::string& path)> on_change;  // of a watched node
  };
  using Done = std::function<void(int code)>;
  using Created = std::function<void(int code, const std::string& path, const Stat& stat)>;
  using Got = std::function<void(int code, std::string data, const Stat& stat)>;
  using GotChildren =
      std::function<void(int code, std::vector<std::string> children, const Stat& stat)>;
  using Checked = std::function<void(int code, const std::vector<int>& each)>;
  enum class Watching : bool { kNo, kYes };

  // What TLS needs, in PEM: all three, or none for a connection without it.
  struct Certificates {
    std::string authority, own, key;
  };

  // Throws Error where the driver refuses the servers, or a file cannot be read. Resolves names:
  // may take its time.
  Handle(const std::string& servers, const Certificates& certificates, milliseconds timeout,
         Events events);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // Ends the session on the server, and with it all its nodes. Every `done` has been called when it
  // returns.
  void close();

  void authenticate(const std::string& user, const std::string& password);
  std::int64_t session() const;
  milliseconds timeout() const;  // as the server granted it

  void create(const std::string& path, const std::string& data, const ACL_vector& acl, int mode,
              Created done);
  void remove(const std::string& path, Done done);
  // In one transaction, and only where a node is at `present`.
  void set_while(const std::string& present, const std::string& path, const std::string& data,
                 Done done);
  void get(const std::string& path, Watching watching, Got done);
  void children(const std::string& path, GotChildren done);
  void exists(const std::string& path, Done done);
  void sync(const std::string& path, Done done);
  // Compares versions, -1 for any, in one transaction that changes nothing.
  void check(const std::vector<std::pair<std::string, int>>& versions, Checked done);

 private:
  zhandle_t* open(const std::string& servers, const Certificates& certificates, int timeout);
  static void on_event(zhandle_t* zh, int type, int state, const char* path, void* context);
  template <class Call, class Fail>
  void submit(Call call, Fail fail);
  struct Transaction;
  void commit(std::unique_ptr<Transaction> transaction);

  const Events events_;
  const kit::ThisProcess process_;
  mutable std::shared_mutex guard_;
  zhandle_t* zh_ = nullptr;  // guarded by guard_; null: closed
};

}  // namespace simba::zookeeper
