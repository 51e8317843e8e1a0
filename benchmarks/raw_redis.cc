#include "benchmarks/raw_redis.h"

#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

namespace simba::bench {
namespace {

constexpr const char* kLease = "16000";

constexpr const char* kRelease =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

// What a hand-over needs besides: a queue, and one message to its first.
constexpr const char* kTakeOrQueue =
    "if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end "
    "redis.call('zadd', KEYS[2], 'nx', redis.call('time')[1], ARGV[1]) return 0";
constexpr const char* kReleaseAndWake =
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('del', KEYS[1]) "
    "local first = redis.call('zpopmin', KEYS[2])[1] "
    "if first then redis.call('publish', KEYS[1] .. ':' .. first, 'released') end return 1";

using Answer = std::unique_ptr<redisReply, void (*)(void*)>;

[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "simba_bench: redis: %s\n", why);
  std::exit(2);
}

template <class... Words>
Answer ask(redisContext* context, const char* format, Words... words) {
  auto* reply = static_cast<redisReply*>(redisCommand(context, format, words...));
  if (reply == nullptr) die(context->errstr);
  if (reply->type == REDIS_REPLY_ERROR) die(reply->str);
  return {reply, freeReplyObject};
}

std::string script_of_the_store(const char* name) {
  std::ifstream in(std::string(SIMBA_REDIS_SCRIPTS "/") + name);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) die("the scripts of the store are not where they were built from");
  return text;
}

redisContext* open(int port) {
  redisContext* context = redisConnect("127.0.0.1", port);
  if (context == nullptr || context->err != 0) die("no connection");
  return context;
}

}  // namespace

RawRedis::RawRedis(int port, std::string key)
    : context_(open(port)), port_(port), key_(std::move(key)) {
  release_ = load(kRelease);
  queue_ = load(kTakeOrQueue);
  wake_ = load(kReleaseAndWake);
  our_take_ = load(script_of_the_store("mutex_acquire.lua"));
  our_release_ = load(script_of_the_store("mutex_release.lua"));
}

RawRedis::~RawRedis() {
  redisFree(context_);
  if (bell_ != nullptr) redisFree(bell_);
}

std::string RawRedis::load(const std::string& script) {
  return ask(context_, "SCRIPT LOAD %s", script.c_str())->str;
}

bool RawRedis::take(const std::string& owner) {
  return ask(context_, "SET %s %s NX PX %s", key_.c_str(), owner.c_str(), kLease)->type ==
         REDIS_REPLY_STATUS;
}

bool RawRedis::release(const std::string& owner) {
  return ask(context_, "EVALSHA %s 1 %s %s", release_.c_str(), key_.c_str(), owner.c_str())
             ->integer == 1;
}

bool RawRedis::take_by_script(const std::string& owner) {
  const char* key = key_.c_str();
  return ask(context_, "EVALSHA %s 4 %s %s:fence %s:token %s:lease %s %s %s 0 0", our_take_.c_str(),
             key, key, key, key, owner.c_str(), kLease, "10000 6000 ")
             ->type == REDIS_REPLY_STRING;
}

bool RawRedis::release_by_script(const std::string& owner) {
  const char* key = key_.c_str();
  return ask(context_, "EVALSHA %s 4 %s %s:token %s:lease %s:contender %s", our_release_.c_str(),
             key, key, key, key, owner.c_str())
             ->integer == 1;
}

void RawRedis::listen(const std::string& waiter) {
  bell_ = open(port_);
  bell_name_ = key_ + ':' + waiter;
  ask(bell_, "SUBSCRIBE %s", key_.c_str());
  ask(bell_, "SUBSCRIBE %s", bell_name_.c_str());
}

void RawRedis::wait() {
  bool woken = false;
  while (!woken) {
    void* message = nullptr;
    if (redisGetReply(bell_, &message) != REDIS_OK) die(bell_->errstr);
    const auto* reply = static_cast<const redisReply*>(message);
    woken = reply->elements == 3 && bell_name_ == reply->element[1]->str;
    freeReplyObject(message);
  }
}

bool RawRedis::take_or_queue_by_script(const std::string& owner, Came came) {
  const char* key = key_.c_str();
  return ask(context_, "EVALSHA %s 5 %s %s:fence %s:token %s:lease %s:contender %s %s %s 0 %s %s 0",
             our_take_.c_str(), key, key, key, key, key, owner.c_str(), kLease, "10000 6000 ",
             owner.c_str(), came == Came::kAgain ? "1" : "0")
             ->type == REDIS_REPLY_STRING;
}

bool RawRedis::take_or_queue(const std::string& owner) {
  return ask(context_, "EVALSHA %s 2 %s %s:queue %s %s", queue_.c_str(), key_.c_str(), key_.c_str(),
             owner.c_str(), kLease)
             ->integer == 1;
}

bool RawRedis::release_and_wake(const std::string& owner) {
  return ask(context_, "EVALSHA %s 2 %s %s:queue %s", wake_.c_str(), key_.c_str(), key_.c_str(),
             owner.c_str())
             ->integer == 1;
}

}  // namespace simba::bench
