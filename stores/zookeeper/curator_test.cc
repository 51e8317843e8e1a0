#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "stores/zookeeper/zookeeper_fixture.h"
#include "testing/best_of.h"
#include "testing/servers/directory.h"
#include "testing/servers/process.h"

// Contenders of Curator's LeaderLatch and ours, in processes of their own, on one mutex.
namespace simba::zookeeper {
namespace {

constexpr const char* kCurator = "/usr/share/java/curator-recipes.jar";

// A program that says when it acquires and releases.
class Contender {
 public:
  Contender(std::string its_name, std::vector<std::string> words)
      : name(std::move(its_name)), log_(directory_.path() / "log") {
    servers::Command command;
    command.words = std::move(words);
    command.log = log_;
    process_ = std::make_unique<servers::Process>(command);
  }

  // The times at which it said so, in nanoseconds of CLOCK_MONOTONIC.
  std::vector<std::int64_t> times(const std::string& what) const {
    std::ifstream file(log_);
    std::vector<std::int64_t> found;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string word;
      std::int64_t time = 0;
      if (words >> word >> time && word == what) found.push_back(time);
    }
    return found;
  }
  bool waits_for(const std::string& what, std::size_t count = 1) const {
    return eventually([&] { return times(what).size() >= count; });
  }
  bool leads() const { return times("acquired").size() > times("released").size(); }
  std::string log() const {
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void stop() { EXPECT_TRUE(process_->stop(SIGTERM, 60s)) << name; }
  void kill() {
    killed_at_ = std::chrono::steady_clock::now().time_since_epoch().count();
    process_->kill();
  }
  void signal(int number) const { process_->signal(number); }
  std::int64_t killed_at() const { return killed_at_; }

  const std::string name;

 private:
  const servers::Directory directory_;
  const std::filesystem::path log_;
  std::unique_ptr<servers::Process> process_;
  std::int64_t killed_at_ = 0;
};

class CuratorTest : public ZookeeperTest {
 protected:
  static constexpr milliseconds kTimeout = 8s;  // longer than a busy machine stands still
  static constexpr milliseconds kTick = 500ms;
  // The session timeout and a tick, and how long the next in the queue takes to be told and to
  // take: much less than a second session timeout, and a busy machine gets more than one try.
  static constexpr milliseconds kSuccession = kTimeout + kTick + 2s;

  void SetUp() override {
    ZookeeperTest::SetUp();
    if (IsSkipped()) return;
    if (std::string(SIMBA_JAVA_CLASSES).empty()) {
      GTEST_SKIP() << "Curator was not there when this was built (Debian: libcurator-recipes-java, "
                      "default-jdk-headless)";
    }
    turn_ = servers::Turn("java", kTurns);
  }
  std::unique_ptr<Contender> curator(const std::string& id) {
    return std::make_unique<Contender>(
        id, std::vector<std::string>{
                "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                std::string(SIMBA_JAVA_CLASSES) + ":" + kCurator, "CuratorContender", servers,
                path(m), id, std::to_string(kTimeout.count())});
  }
  std::unique_ptr<Contender> ours(const std::string& id) {
    return std::make_unique<Contender>(
        id, std::vector<std::string>{SIMBA_CONTENDER,
                                     "zookeeper://" + servers +
                                         "?tick=" + std::to_string(kTick.count()) +
                                         "&session-timeout=" + std::to_string(kTimeout.count()),
                                     m, id, "6000", "3000"});
  }
  servers::Turn turn_;

  // In the queue, wherever it stands.
  bool waits_in_queue(std::size_t count) {
    return eventually([&] { return raw().children(path(m)).size() == count; });
  }

  using Make = std::function<std::unique_ptr<Contender>()>;
  // How long it takes the second to lead after the first, which leads, was killed.
  nanoseconds succession(const Make& first, const Make& second) {
    const auto owner = first();
    EXPECT_TRUE(owner->waits_for("acquired")) << owner->log();
    const auto heir = second();
    EXPECT_TRUE(waits_in_queue(2));
    owner->kill();
    const bool leads = heir->waits_for("acquired");
    EXPECT_TRUE(leads) << heir->log();
    const nanoseconds took =
        leads ? nanoseconds{heir->times("acquired")[0] - owner->killed_at()} : testing::kNever;
    heir->stop();
    EXPECT_TRUE(waits_in_queue(0));
    return took;
  }
};

TEST_F(CuratorTest, OursWaitsForCuratorAndSucceedsIt) {
  const auto theirs = curator("theirs");
  ASSERT_TRUE(theirs->waits_for("acquired")) << theirs->log();
  const auto mine = ours("mine");
  ASSERT_TRUE(waits_in_queue(2));
  const auto store = connect();
  const Observation seen = observe(*store, m);
  EXPECT_EQ(seen.owner.id, "theirs") << "who does not lead knows who does";
  EXPECT_EQ(seen.owner.token,
            static_cast<Token>(raw().stat(path(m) + '/' + raw().children(path(m))[0]).czxid));
  EXPECT_FALSE(mine->leads());
  theirs->stop();
  ASSERT_TRUE(mine->waits_for("acquired")) << mine->log();
  EXPECT_GT(mine->times("acquired")[0], theirs->times("released")[0]);
  mine->stop();
  EXPECT_TRUE(waits_in_queue(0));
}

// It does not look at the container: named there it would lead on, and nobody would see it.
TEST_F(CuratorTest, CuratorIsEvictedByTheDeletionOfItsNodeAlone) {
  const auto theirs = curator("theirs");
  ASSERT_TRUE(theirs->waits_for("acquired")) << theirs->log();
  const auto store = connect();
  const Observation seen = observe(*store, m);
  EXPECT_THAT(
      error_of([&] { store->evict(m, "theirs", seen.owner.token, Eviction::kKeepLease, soon()); }),
      ::testing::HasSubstr("nobody was evicted; --now"));
  EXPECT_EQ(raw().data(path(m)), "");
  EXPECT_EQ(observe(*store, m).owner.id, "theirs");
  EXPECT_TRUE(theirs->leads());
  take(*store, m, "mine~1");
  EXPECT_NE(store->evict(m, "theirs", seen.owner.token, Eviction::kFreeNow, soon()).owner.id,
            "theirs");
  EXPECT_TRUE(owns(take(*store, m, "mine~1"), "mine~1"));
}

// As one has it that is made without an id: an owner without a name would look like one evicted.
TEST_F(CuratorTest, ACuratorWithoutAnIdIsCalledByItsNode) {
  const auto theirs = curator("");
  ASSERT_TRUE(theirs->waits_for("acquired")) << theirs->log();
  const std::string node = raw().children(path(m)).at(0);
  ASSERT_EQ(raw().data(path(m) + '/' + node), "");
  const auto store = connect(), observer = connect();
  const Observation seen = observe(*observer, m);
  EXPECT_TRUE(owns(seen, node));
  EXPECT_EQ(take(*store, m, "mine~1").owner.id, node);
  EXPECT_NE(observer->evict(m, node, seen.owner.token, Eviction::kFreeNow, soon()).owner.id, node);
  EXPECT_TRUE(owns(take(*store, m, "mine~1"), "mine~1"));
}

TEST_F(CuratorTest, CuratorWaitsForOursAndSucceedsIt) {
  const auto mine = ours("mine");
  ASSERT_TRUE(mine->waits_for("acquired")) << mine->log();
  const auto theirs = curator("theirs");
  ASSERT_TRUE(waits_in_queue(2));
  EXPECT_TRUE(raw().data(path(m) + '/' + raw().children(path(m))[0]).starts_with("mine~"));
  EXPECT_FALSE(theirs->leads());
  mine->stop();
  ASSERT_TRUE(theirs->waits_for("acquired")) << theirs->log();
  EXPECT_GT(theirs->times("acquired")[0], mine->times("released")[0]);
  theirs->stop();
}

TEST_F(CuratorTest, AKilledCuratorIsSucceededByOurs) {
  const auto round = [&] {
    return succession([&] { return curator("theirs"); }, [&] { return ours("mine"); });
  };
  EXPECT_LT(testing::best_of(3, kSuccession, round), kSuccession);
}

TEST_F(CuratorTest, AKilledOneOfOursIsSucceededByCurator) {
  const auto round = [&] {
    return succession([&] { return ours("mine"); }, [&] { return curator("theirs"); });
  };
  EXPECT_LT(testing::best_of(3, kSuccession, round), kSuccession);
}

// Three of each kind, and whoever leads is stopped or killed: never two at once, and in the order
// of the queue.
TEST_F(CuratorTest, ManyOfBothTakeTurnsOneAtATime) {
  std::vector<std::unique_ptr<Contender>> all;
  for (std::size_t i = 0; i < 6; ++i) {
    all.push_back(i % 2 == 0 ? ours("ours" + std::to_string(i))
                             : curator("curator" + std::to_string(i)));
    ASSERT_TRUE(waits_in_queue(i + 1));
  }
  std::int64_t ended = 0;
  for (std::size_t turn = 0; turn < all.size(); ++turn) {
    Contender& leader = *all[turn];
    ASSERT_TRUE(leader.waits_for("acquired")) << leader.name << ": " << leader.log();
    EXPECT_GT(leader.times("acquired")[0], ended) << leader.name;
    for (std::size_t other = turn + 1; other < all.size(); ++other) {
      EXPECT_EQ(all[other]->times("acquired").size(), 0U) << all[other]->name << " led out of turn";
    }
    if (turn == 2 || turn == 3) {
      leader.kill();
      ended = leader.killed_at();
    } else {
      leader.stop();
      ended = leader.times("released").at(0);
    }
  }
}

// A process that stood still must not find itself owning when it goes on.
TEST_F(CuratorTest, AStoppedOneOfOursHasLostWhenItGoesOn) {
  const auto mine = ours("mine");
  ASSERT_TRUE(mine->waits_for("acquired")) << mine->log();
  const auto theirs = curator("theirs");
  ASSERT_TRUE(waits_in_queue(2));
  mine->signal(SIGSTOP);
  ASSERT_TRUE(theirs->waits_for("acquired"));
  mine->signal(SIGCONT);
  ASSERT_TRUE(mine->waits_for("released"));
  EXPECT_TRUE(waits_in_queue(2)) << "it queues again";
  EXPECT_EQ(mine->times("acquired").size(), 1U);
  theirs->stop();
  EXPECT_TRUE(mine->waits_for("acquired", 2));
}

}  // namespace
}  // namespace simba::zookeeper
