#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "testing/contract.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba::testing {

// The contract of a store on a real server (servers::TestServer). Where there is none, its cases
// are skipped, with the reason.
class ServerContract : public StoreContract {
 public:
  std::shared_ptr<Store> connect() final {
    if (server_) return open();
    [&] { GTEST_SKIP() << unavailable_; }();
    return nullptr;
  }

 protected:
  explicit ServerContract(std::string_view kind) {
    try {
      server_.emplace(kind);
    } catch (const servers::Unavailable& reason) {
      unavailable_ = reason.what();
    }
  }

  virtual std::shared_ptr<Store> open() = 0;
  const servers::TestServer& server() const { return *server_; }
  // Stores of one process share connections where all else is the same: `parameter`, up to its '=',
  // gets another number each time.
  std::string url_apart(const std::string& parameter) const {
    static std::atomic<int> count{10};
    return server_->url(parameter + std::to_string(++count));
  }
  // The URL for another user, "name" or "name:password". On a server of ours the suite has no more
  // rights than the documentation tells to give; one of somebody else gets no users from us.
  std::string as(const std::string& user, std::string url) const {
    if (!server_->is_shared()) return url;
    const std::size_t from = url.find("//") + 2, at = url.find('@', from);
    return url.replace(from, at == url.npos ? 0 : at + 1 - from, user + '@');
  }

 private:
  std::optional<servers::TestServer> server_;
  std::string unavailable_;
};

}  // namespace simba::testing
