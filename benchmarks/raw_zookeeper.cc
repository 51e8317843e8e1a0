#include "benchmarks/raw_zookeeper.h"

#define THREADED  // shows the blocking calls
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace simba::bench {
namespace {

constexpr const char* kStem = "/_c_01234567-89ab-cdef-0123-456789abcdef-latch-";
constexpr int kTimeout = 20'000;

void check(int code, const char* doing) {
  if (code == ZOK) return;
  std::fprintf(stderr, "simba_bench: zookeeper: %s: %s\n", doing, zerror(code));
  std::exit(2);
}

void discard(const char*) {}

std::string number_of(const std::string& name) { return name.substr(name.rfind("latch-") + 6); }

std::vector<std::string> names_of(const String_vector* names) {
  std::vector<std::string> all;
  for (int i = 0; names && i < names->count; ++i) all.emplace_back(names->data[i]);
  return all;
}

}  // namespace

RawZookeeper::RawZookeeper(const std::string& servers, std::string path, Requests requests)
    : path_(std::move(path)), requests_(requests) {
  zh_ = zookeeper_init2(servers.c_str(), on_event, kTimeout, nullptr, this, ZOO_NO_LOG_CLIENTENV,
                        discard);
  std::unique_lock lock(guard_);
  changed_.wait(lock, [this] { return connected_; });
  lock.unlock();
  const int code =
      zoo_create(zh_, path_.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
  check(code == ZNODEEXISTS ? ZOK : code, "make the container");
}

RawZookeeper::~RawZookeeper() { zookeeper_close(zh_); }

void RawZookeeper::on_event(_zhandle*, int type, int state, const char*, void* context) {
  auto* self = static_cast<RawZookeeper*>(context);
  const std::lock_guard lock(self->guard_);
  if (type == ZOO_SESSION_EVENT) {
    self->connected_ = state == ZOO_CONNECTED_STATE;
  } else {
    self->gone_ = true;
  }
  self->changed_.notify_one();
}

bool RawZookeeper::join(const std::string& owner) {
  return requests_ == Requests::kTogether ? join_together(owner) : join_one_by_one(owner);
}

bool RawZookeeper::join_one_by_one(const std::string& owner) {
  std::array<char, 512> made{};
  Stat stat{};
  check(zoo_create2(zh_, (path_ + kStem).c_str(), owner.data(), static_cast<int>(owner.size()),
                    &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, made.data(),
                    static_cast<int>(made.size()), &stat),
        "make a node");
  node_ = made.data();
  token_ = stat.czxid;
  return is_first(list());
}

void RawZookeeper::done(int code) {
  check(code, "queue");
  const std::lock_guard lock(guard_);
  if (++answers_ == awaited_) changed_.notify_one();
}

bool RawZookeeper::join_together(const std::string& owner) {
  answers_ = 0;
  awaited_ = 2;
  check(zoo_acreate2(
            zh_, (path_ + kStem).c_str(), owner.data(), static_cast<int>(owner.size()),
            &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
            [](int code, const char* made, const Stat* stat, const void* context) {
              auto* self = static_cast<RawZookeeper*>(const_cast<void*>(context));
              if (code == ZOK) self->node_ = made;
              if (code == ZOK) self->token_ = stat->czxid;
              self->done(code);
            },
            this),
        "make a node");
  check(zoo_aget_children2(
            zh_, path_.c_str(), 0,
            [](int code, const String_vector* names, const Stat*, const void* context) {
              auto* self = static_cast<RawZookeeper*>(const_cast<void*>(context));
              self->listed_ = names_of(names);
              self->done(code);
            },
            this),
        "list");
  std::unique_lock lock(guard_);
  changed_.wait(lock, [this] { return answers_ == awaited_; });
  return is_first(listed_);
}

std::vector<std::string> RawZookeeper::list() {
  String_vector names{};
  Stat stat{};
  check(zoo_get_children2(zh_, path_.c_str(), 0, &names, &stat), "list");
  std::vector<std::string> all = names_of(&names);
  deallocate_String_vector(&names);
  return all;
}

// Remembers who stands before.
bool RawZookeeper::is_first(const std::vector<std::string>& names) {
  const std::string own = number_of(node_);
  before_.clear();
  for (const std::string& name : names) {
    if (number_of(name) >= own) continue;
    if (before_.empty() || number_of(name) > number_of(before_)) before_ = name;
  }
  return before_.empty();
}

void RawZookeeper::wait() {
  do {
    gone_ = false;
    std::array<char, 512> data{};
    int length = static_cast<int>(data.size());
    const int code =
        zoo_get(zh_, (path_ + '/' + before_).c_str(), 1, data.data(), &length, nullptr);
    if (code == ZNONODE) continue;
    check(code, "watch");
    std::unique_lock lock(guard_);
    changed_.wait(lock, [this] { return gone_; });
  } while (!is_first(list()));
}

void RawZookeeper::watch(const std::vector<std::string>& names) {
  answers_ = 0;
  awaited_ = static_cast<int>(names.size());
  const auto answered = [](int code, const Stat*, const void* context) {
    auto* self = static_cast<RawZookeeper*>(const_cast<void*>(context));
    self->done(code == ZNONODE ? ZOK : code);
  };
  for (const std::string& name : names) {
    check(zoo_aexists(zh_, (path_ + '/' + name).c_str(), 1, answered, this), "watch");
  }
  std::unique_lock lock(guard_);
  changed_.wait(lock, [this] { return answers_ == awaited_; });
}

void RawZookeeper::leave() { check(zoo_delete(zh_, node_.c_str(), -1), "delete the node"); }

}  // namespace simba::bench
