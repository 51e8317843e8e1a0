#include "stores/redis/reply.h"

#include <hiredis/hiredis.h>

#include <new>
#include <utility>

#include "simba/error.h"

namespace simba::redis {
namespace {

// Of one reply with all that is in it: arrays nest, and a few bytes announce many items.
constexpr std::size_t kMostItems = 1'000'000;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

}  // namespace

struct ReplyReader::Growing {
  Reply root;
  std::size_t items = 0, bytes = 0;
  bool is_too_large = false;

  bool has_room(std::size_t more_items, std::size_t more_bytes) {
    is_too_large = more_items > kMostItems - items || more_bytes > kMostBytes - bytes;
    if (is_too_large) return false;
    items += more_items;
    bytes += more_bytes;
    return true;
  }
};

namespace {

ReplyReader::Growing& growing(const redisReadTask* task) {
  return *static_cast<ReplyReader::Growing*>(task->privdata);
}

// Where the reader wants the next value: the root, or a place in the array around it.
Reply& place(const redisReadTask* task) {
  if (task->parent == nullptr) return growing(task).root;
  return static_cast<Reply*>(task->parent->obj)->items[static_cast<std::size_t>(task->idx)];
}

// No exception may pass through the reader, which is C; null is its word for "no memory".
template <class Fill>
void* filled(const redisReadTask* task, Reply::Kind kind, Fill fill) noexcept {
  try {
    Reply& reply = place(task);
    reply.kind = kind;
    fill(reply);
    return &reply;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* create_string(const redisReadTask* task, char* text, std::size_t length) {
  if (!growing(task).has_room(0, length)) return nullptr;
  const bool error = task->type == REDIS_REPLY_ERROR;
  return filled(task, error ? Reply::Kind::kError : Reply::Kind::kText,
                [&](Reply& reply) { reply.text.assign(text, length); });
}

template <class Count>  // int; from hiredis 1.0 on size_t
void* create_array(const redisReadTask* task, Count items) {
  const auto count = static_cast<std::size_t>(items > 0 ? items : 0);
  if (!growing(task).has_room(count, 0)) return nullptr;
  return filled(task, Reply::Kind::kArray, [&](Reply& reply) { reply.items.resize(count); });
}

void* create_integer(const redisReadTask* task, long long value) {
  return filled(task, Reply::Kind::kNumber, [&](Reply& reply) { reply.number = value; });
}

void* create_nil(const redisReadTask* task) {
  return filled(task, Reply::Kind::kNil, [](Reply&) {});
}

#if HIREDIS_MAJOR >= 1
// Of RESP3, which nobody has asked for.
void* refuse_double(const redisReadTask*, double, char*, std::size_t) { return nullptr; }
void* refuse_bool(const redisReadTask*, int) { return nullptr; }

redisReplyObjectFunctions functions{create_string, create_array, create_integer, refuse_double,
                                    create_nil,    refuse_bool,  [](void*) {}};
#else
redisReplyObjectFunctions functions{create_string, create_array, create_integer, create_nil,
                                    [](void*) {}};
#endif

[[noreturn]] void fail(const std::string& why) {
  throw Error(Errc::kCorrupt, "redis: the server's answer is no answer: " + why);
}

}  // namespace

void ReplyReader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

ReplyReader::ReplyReader()
    : reader_(redisReaderCreateWithFunctions(&functions)), growing_(std::make_unique<Growing>()) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = growing_.get();
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes, Replies& complete) {
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    fail(reader_->errstr);
  }
  while (true) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
      fail(growing_->is_too_large ? "it is too long" : reader_->errstr);
    }
    if (reply == nullptr) break;
    complete.push_back(std::exchange(*growing_, Growing{}).root);
  }
  if (reader_->len - reader_->pos > kMostBytes) fail("it is too long");
}

}  // namespace simba::redis
