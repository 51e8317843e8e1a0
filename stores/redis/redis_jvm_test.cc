#include "stores/redis/redis_fixture.h"

// Contenders of JVM Simba, which listen to their mutex and, up to 3.1, to themselves, played by
// hand with the scripts they run, beside contenders of ours: they exclude and wake each other.
namespace simba::redis {
namespace {

// Up to 3.1.
constexpr const char* kOldAcquire = R"lua(
redis.replicate_commands();
local mutex = KEYS[1];
local contenderId = ARGV[1];
local transition = ARGV[2];
local mutexKey = 'simba:' .. mutex;
local succeed = redis.call('set', mutexKey, contenderId, 'nx', 'px', transition)
if succeed then
    local message = 'acquired@@' .. contenderId;
    redis.call('publish', mutexKey, message)
    return contenderId..'@@'..transition;
end
local contenderQueueKey = mutexKey .. ':contender';
local nowTime = redis.call('time')[1];
redis.call('zadd', contenderQueueKey, 'nx', nowTime, contenderId)
local ownerId = redis.call('get', mutexKey)
local ttl = redis.call('pttl', mutexKey)
return ownerId..'@@'..ttl;
)lua";
constexpr const char* kOldGuard = R"lua(
local mutexKey = 'simba:' .. KEYS[1];
local contenderId = ARGV[1];
local transition = ARGV[2];
if redis.call('get', mutexKey) ~= contenderId then
    return redis.call('get', mutexKey) .. '@@' .. redis.call('pttl', mutexKey)
end
if redis.call('set', mutexKey, contenderId, 'xx', 'px', transition) then
    return contenderId .. '@@' .. transition
end
)lua";
constexpr const char* kOldRelease = R"lua(
local mutexKey = 'simba:' .. KEYS[1];
local contenderId = ARGV[1];
if redis.call('get', mutexKey) ~= contenderId then return false end
redis.call('del', mutexKey)
local head = redis.call('zpopmin', mutexKey .. ':contender')[1]
if head then redis.call('publish', mutexKey .. ':' .. head, 'released@@' .. contenderId) end
return true
)lua";
// From 3.2 on everybody is told, and nobody queues; from 3.3 on there is a token.
constexpr const char* kNewAcquire = R"lua(
local mutexKey = 'simba:' .. KEYS[1];
if redis.call('set', mutexKey, ARGV[1], 'nx', 'px', ARGV[2]) then
    local token = redis.call('incr', mutexKey .. ':fence')
    redis.call('set', mutexKey .. ':token', token, 'px', ARGV[2])
    redis.call('publish', mutexKey, 'acquired@@' .. ARGV[1])
    return ARGV[1] .. '@@' .. ARGV[2]
end
return redis.call('get', mutexKey) .. '@@' .. redis.call('pttl', mutexKey)
)lua";
constexpr const char* kNewRelease = R"lua(
local mutexKey = 'simba:' .. KEYS[1];
if redis.call('get', mutexKey) ~= ARGV[1] then return false end
redis.call('del', mutexKey, mutexKey .. ':token', mutexKey .. ':contender')
redis.call('publish', mutexKey, 'released@@' .. ARGV[1])
return true
)lua";

class JvmTest : public RedisTest {
 protected:
  // As a contender of the JVM calls it: the name in braces is the one key.
  std::string jvm(const char* script, const std::string& id, const std::string& lease = "60000") {
    return admin()({"EVAL", script, "1", "{" + m + "}", id, lease});
  }
  // A contender of ours that waits with a place in the queue, and will not ask by itself soon.
  struct Ours {
    Client client;
    Contender contender;
  };
  std::unique_ptr<Ours> wait() {
    ContendOptions options = lease(60s, 30s);
    options.safety_poll = 60s;
    const Client client(open(), {});
    auto ours = std::unique_ptr<Ours>(new Ours{client, {client, m, options}});
    EXPECT_TRUE(eventually([&] { return admin()({"ZCARD", key(":contender")}) != "0"; }));
    return ours;
  }
};

TEST_F(JvmTest, AnOldOwnerExcludesOurs) {
  ASSERT_EQ(jvm(kOldAcquire, "jvm"), "jvm@@60000");
  const Observation seen = take(*open(), m, "a~1");
  EXPECT_EQ(seen.owner.id, "jvm");
  EXPECT_EQ(seen.owner.token, 0u) << "it has none";
  EXPECT_FALSE(seen.owner.ttl_at);
  EXPECT_GT(seen.owner.transition_at - seen.now, 50s);
}

TEST_F(JvmTest, OursExcludesAnOldAndANewContender) {
  const auto store = open();
  take(*store, m, "a~1");
  EXPECT_THAT(jvm(kOldAcquire, "jvm"), ::testing::StartsWith("a~1@@"));
  EXPECT_THAT(jvm(kNewAcquire, "jvm4"), ::testing::StartsWith("a~1@@"));
  EXPECT_THAT(jvm(kOldGuard, "jvm"), ::testing::StartsWith("a~1@@")) << "not its to renew";
  jvm(kOldRelease, "jvm");
  EXPECT_EQ(observe(*store, m).owner.id, "a~1") << "not its to release";
}

TEST_F(JvmTest, AnOldOwnersRenewalIsSeenByOurs) {
  jvm(kOldAcquire, "jvm", "20000");
  const auto store = open();
  const Observation before = observe(*store, m);
  jvm(kOldGuard, "jvm", "60000");
  EXPECT_GT(observe(*store, m).owner.transition_at, before.owner.transition_at + 20s);
}

TEST_F(JvmTest, OursWakesAnOldWaiterOnItsOwnChannel) {
  const auto store = open();
  take(*store, m, "a~1");
  Admin ear(url());
  ear.subscribe({key(":jvm"), key()});
  jvm(kOldAcquire, "jvm");
  release(*store, m, "a~1");
  EXPECT_EQ(ear.message(key(":jvm")), "released@@a~1");
  EXPECT_EQ(jvm(kOldAcquire, "jvm"), "jvm@@60000");
}

TEST_F(JvmTest, OursSkipsADeadOldWaiterAndWakesTheNext) {
  const auto store = open();
  take(*store, m, "a~1");
  jvm(kOldAcquire, "dead");
  admin()({"ZADD", key(":contender"), "1", "dead"});
  Admin ear(url());
  ear.subscribe({key(":jvm"), key()});
  jvm(kOldAcquire, "jvm");
  release(*store, m, "a~1");
  EXPECT_EQ(ear.message(key(":jvm")), "released@@a~1");
}

TEST_F(JvmTest, AnOldOwnerWakesOurs) {
  jvm(kOldAcquire, "jvm");
  const auto ours = wait();
  jvm(kOldRelease, "jvm");
  EXPECT_TRUE(eventually([&] { return ours->contender.is_owner(); })) << "it was not woken";
  EXPECT_EQ(admin()({"GET", key()}), ours->contender.wire_id());
}

TEST_F(JvmTest, ANewOwnerWakesOurs) {
  jvm(kNewAcquire, "jvm4");
  const auto ours = wait();
  jvm(kNewRelease, "jvm4");
  EXPECT_TRUE(eventually([&] { return ours->contender.is_owner(); })) << "it was not woken";
  EXPECT_EQ(admin()({"EXISTS", key(":contender")}), "0");
}

TEST_F(JvmTest, OursWakesOursAfterANewOwnerHasDeletedTheQueue) {
  jvm(kNewAcquire, "jvm4");
  const auto first = wait();
  const auto second = wait();
  jvm(kNewRelease, "jvm4");
  const auto owner = [&] {
    return first->contender.is_owner()    ? first.get()
           : second->contender.is_owner() ? second.get()
                                          : nullptr;
  };
  ASSERT_TRUE(eventually([&] { return owner() != nullptr; }));
  Ours* const one = owner();
  Ours* const other = one == first.get() ? second.get() : first.get();
  one->contender.stop();
  EXPECT_TRUE(eventually([&] { return other->contender.is_owner(); })) << "it was not woken";
}

TEST_F(JvmTest, ANewWaiterHearsOfOurReleaseOnTheChannelOfTheMutex) {
  const auto store = open();
  take(*store, m, "a~1");
  Admin ear(url());
  ear({"SUBSCRIBE", key()});
  jvm(kNewAcquire, "jvm4");
  release(*store, m, "a~1");
  EXPECT_EQ(ear.message(), "released@@a~1");
  EXPECT_EQ(jvm(kNewAcquire, "jvm4"), "jvm4@@60000");
}

TEST_F(JvmTest, TokensGrowThroughTermsOfBoth) {
  const auto store = open();
  const Token first = take(*store, m, "a~1").owner.token;
  release(*store, m, "a~1");
  jvm(kNewAcquire, "jvm4");
  const Token second = observe(*store, m).owner.token;
  EXPECT_GT(second, first);
  jvm(kNewRelease, "jvm4");
  EXPECT_GT(take(*store, m, "b~1").owner.token, second);
}

TEST_F(JvmTest, TheFirstTermOfOursIsAboveEveryTokenTheJvmCounted) {
  for (int i = 0; i < 3; ++i) {
    jvm(kNewAcquire, "jvm4");
    jvm(kNewRelease, "jvm4");
  }
  EXPECT_EQ(admin()({"GET", key(":fence")}), "3");
  EXPECT_GT(take(*open(), m, "a~1").owner.token, 1'000'000'000'000'000u);
}

TEST_F(JvmTest, AnExpiredOldOwnerIsTakenOver) {
  jvm(kOldAcquire, "jvm", "300");
  const Client client(open(), {});
  Contender ours(client, m, lease(20s, 10s));
  EXPECT_TRUE(eventually([&] { return ours.is_owner(); }));
}

}  // namespace
}  // namespace simba::redis
