#include "stores/kit/reader.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "stores/kit/eventually.h"
#include "stores/kit/listener.h"

namespace simba::kit {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

// What the other side does: news, or the end of the connection.
struct Line {
  std::mutex guard;
  std::deque<std::string> news;  // guarded by guard; "cut" ends the connection
  std::atomic<int> opened{0}, tried{0};
  std::atomic<bool> refuses{false}, cannot_push{false};

  void say(std::string word) {
    const std::lock_guard lock(guard);
    news.push_back(std::move(word));
  }
};

class LineSource : public Source {
 public:
  explicit LineSource(std::shared_ptr<Line> line) : line_(std::move(line)) {}
  void read(const StopSignal& stop, const Hint& hint) override {
    if (!stop.pause(1ms)) return;
    const std::lock_guard lock(line_->guard);
    if (line_->news.empty()) return;
    const std::string word = line_->news.front();
    line_->news.pop_front();
    if (word == "cut") throw Error(Errc::kUnreachable, "cut");
    hint(word);
  }

 private:
  const std::shared_ptr<Line> line_;
};

class ReaderTest : public ::testing::Test {
 protected:
  Reader::Open open() {
    return [line = line](const StopSignal&) -> std::unique_ptr<Source> {
      ++line->tried;
      if (line->cannot_push) return nullptr;
      if (line->refuses) throw Error(Errc::kUnreachable, "refused");
      ++line->opened;
      return std::make_unique<LineSource>(line);
    };
  }
  Reader::Parts parts() {
    Reader::Parts made;
    made.name = "test-reader";
    made.backoff = Backoff(1ms, 5ms);
    made.open = open();
    made.hint = [this](std::string_view mutex) {
      const std::lock_guard lock(guard);
      hints.emplace_back(mutex);
    };
    made.on_trouble = [this](const Error&) { ++troubles; };
    return made;
  }
  std::vector<std::string> heard() {
    const std::lock_guard lock(guard);
    return hints;
  }

  const std::shared_ptr<Line> line = std::make_shared<Line>();
  std::mutex guard;
  std::vector<std::string> hints;  // guarded by guard
  std::atomic<int> troubles{0};
};

TEST_F(ReaderTest, PassesHintsOnAfterOneForAny) {
  const Reader reader(parts());
  line->say("report");
  ASSERT_TRUE(eventually([&] { return heard().size() == 2; }));
  EXPECT_EQ(heard(), (std::vector<std::string>{"", "report"}));
  EXPECT_TRUE(reader.is_live());
}

TEST_F(ReaderTest, OpensAgainWhatWasLostAndSaysSoOnce) {
  const Reader reader(parts());
  ASSERT_TRUE(eventually([&] { return reader.is_live(); }));
  line->refuses = true;
  line->say("cut");
  ASSERT_TRUE(eventually([&] { return !reader.is_live() && troubles == 1; }));
  ASSERT_TRUE(eventually([&, before = line->tried.load()] { return line->tried > before + 2; }));
  EXPECT_EQ(troubles, 1) << "one outage, one line";
  line->refuses = false;
  ASSERT_TRUE(eventually([&] { return reader.is_live(); }));
  EXPECT_EQ(line->opened, 2);
  EXPECT_TRUE(eventually([&] {
    return heard() == std::vector<std::string>{"", ""};
  })) << "what changed in between was not heard";
  line->say("cut");
  EXPECT_TRUE(eventually([&] { return troubles == 2; })) << "another outage, another line";
}

TEST_F(ReaderTest, IsNeverLiveWhereNothingCanBePushed) {
  line->cannot_push = true;
  {
    const Reader reader(parts());
    ASSERT_TRUE(eventually([&] { return line->tried == 1; }));
    EXPECT_FALSE(reader.is_live());
  }
  EXPECT_EQ(line->tried, 1);
  EXPECT_TRUE(heard().empty()) << "the hint that comes before it is live";
  EXPECT_EQ(troubles, 0);
}

TEST_F(ReaderTest, NothingIsHeardAfterItsEnd) {
  for (int round = 0; round < 20; ++round) {
    const auto listener = std::make_shared<int>(round);
    Reader::Parts heard_by = parts();
    heard_by.hint = [listener, hint = heard_by.hint](std::string_view mutex) { hint(mutex); };
    auto reader = std::make_unique<Reader>(std::move(heard_by));
    line->say("x");
    if (round % 2 == 0) eventually([&] { return reader->is_live(); });
    reader.reset();
    EXPECT_EQ(listener.use_count(), 1) << "somebody could still call";
  }
}

class ListenerTest : public ReaderTest {
 protected:
  std::unique_ptr<Watch> watch(std::string_view mutex) {
    return listener.add(mutex, [this, name = std::string(mutex)] {
      const std::lock_guard lock(guard);
      hints.push_back(name);
    });
  }
  // Live, and woken once for what was not heard before.
  std::unique_ptr<Watch> watch_live(std::string_view mutex) {
    auto made = watch(mutex);
    EXPECT_TRUE(eventually([&] { return made->is_live(); }));
    const std::lock_guard lock(guard);
    hints.clear();
    return made;
  }

  const std::shared_ptr<SharedLog> log = std::make_shared<SharedLog>();
  Listener listener{"test-listener", open(), log};
};

TEST_F(ListenerTest, OneConnectionHearsForAllFromTheFirstWatchOn) {
  EXPECT_EQ(line->opened, 0);
  const auto a = watch_live("a"), b = watch_live("b");
  line->say("b");
  ASSERT_TRUE(eventually([&] { return !heard().empty(); }));
  EXPECT_THAT(heard(), ElementsAre("b"));
  line->say("");
  ASSERT_TRUE(eventually([&] { return heard().size() == 3; }));
  EXPECT_THAT(heard(), ElementsAre("b", "a", "b")) << "the one for any reaches all";
  EXPECT_EQ(line->opened, 1);
}

TEST_F(ListenerTest, AReleaseHereNeedsNoConnection) {
  line->refuses = true;
  const auto watched = watch("report");
  ASSERT_TRUE(heard().empty());
  listener.wake("report");
  EXPECT_THAT(heard(), ElementsAre("report"));
  EXPECT_FALSE(watched->is_live());
}

TEST_F(ListenerTest, TheLogHearsThatWaitersPoll) {
  const auto said = SharedLog::add(log, [this](LogLevel, std::string_view text) {
    const std::lock_guard lock(guard);
    hints.emplace_back(text);
  });
  const auto watched = watch_live("report");
  line->refuses = true;
  line->say("cut");
  ASSERT_TRUE(eventually([&] { return !heard().empty(); }));
  EXPECT_THAT(heard(), ElementsAre("waiters poll until this is over: cut"));
  EXPECT_FALSE(watched->is_live());
}

}  // namespace
}  // namespace simba::kit
