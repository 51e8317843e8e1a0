#include "stores/kit/reader.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <stdexcept>
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

// The same, for whoever has the time.
class LentLineSource : public LendableSource {
 public:
  explicit LentLineSource(std::shared_ptr<Line> line) : line_(std::move(line)) {}
  void read_until(int interrupt, LocalTime until, const Hint& hint) override {
    while (!wait_for(interrupt, POLLIN, std::min(until, BootClock::now() + 1ms))) {
      if (BootClock::now() >= until) return;
      const std::lock_guard lock(line_->guard);
      if (line_->news.empty()) continue;
      const std::string word = line_->news.front();
      line_->news.pop_front();
      if (word == "cut") throw Error(Errc::kUnreachable, "cut");
      // Not enough memory, say, in a waiter's turn: the reader's has no end.
      if (word == "odd" && until != LocalTime::max()) throw std::runtime_error("odd");
      if (word == "alien" && until != LocalTime::max())
        throw 7;  // NOLINT(hicpp-exception-baseclass)
      return hint(word);
    }
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

// A waiter of its own thread, and who was on which thread told.
class TurnsTest : public ReaderTest {
 protected:
  TurnsTest() {
    Reader::Parts made = parts();
    made.open = [line = line](const StopSignal&) {
      ++line->opened;
      return std::make_unique<LentLineSource>(line);
    };
    made.hint = [this](std::string_view mutex) {
      if (mutex.empty()) return;
      const std::lock_guard lock(guard);
      told_on = std::this_thread::get_id();
      hints.emplace_back(mutex);
    };
    reader = std::make_unique<Reader>(std::move(made));
    EXPECT_TRUE(eventually([&] { return reader->is_live(); }));
  }
  // Who comes before the first turn is not let in.
  bool listen() { return reader->listen(interrupt.descriptor(), BootClock::now() + 20ms); }
  bool is_told_here() {
    const std::lock_guard lock(guard);
    return told_on == std::this_thread::get_id();
  }
  bool is_told_elsewhere() {
    const std::lock_guard lock(guard);
    return told_on != std::thread::id{} && told_on != std::this_thread::get_id();
  }

  StopSignal interrupt;
  std::thread::id told_on;  // guarded by guard
  std::unique_ptr<Reader> reader;
};

TEST_F(TurnsTest, AWaiterReadsInPlaceOfTheReader) {
  EXPECT_TRUE(eventually([&] {
    line->say("report");
    return listen() && is_told_here();
  }));
}

TEST_F(TurnsTest, TheReaderReadsAgainWhenNobodyHasForAMoment) {
  ASSERT_TRUE(eventually([&] { return listen(); }));
  line->say("report");
  EXPECT_TRUE(eventually([&] { return is_told_elsewhere(); }));
}

TEST_F(TurnsTest, NobodyListensWhileTheReaderIsNeeded) {
  ASSERT_TRUE(eventually([&] { return listen(); }));
  Reader::Need need(*reader);
  EXPECT_FALSE(listen());
  line->say("report");
  EXPECT_TRUE(eventually([&] { return is_told_elsewhere(); }));
  EXPECT_FALSE(listen());
  need.set(false);
  EXPECT_TRUE(eventually([&] { return listen(); }));
}

TEST_F(TurnsTest, WhoIsInterruptedLeavesItToTheReaderThatIsNeeded) {
  std::jthread waiter([&] {
    while (!interrupt.is_requested()) reader->listen(interrupt.descriptor(), LocalTime::max());
  });
  line->say("one");
  ASSERT_TRUE(eventually([&] { return heard().size() == 1; }));
  const Reader::Need need(*reader);
  interrupt.request();
  waiter.join();
  line->say("two");
  EXPECT_TRUE(eventually([&] { return heard().size() == 2; }));
}

TEST_F(TurnsTest, WhatAWaiterFindsLostIsOpenedAgain) {
  ASSERT_TRUE(eventually([&] { return listen(); }));
  ASSERT_TRUE(eventually([&] {
    line->say("cut");
    return !listen();
  }));
  EXPECT_TRUE(eventually([&] { return troubles > 0 && line->opened > 1; }));
  EXPECT_TRUE(eventually([&] {
    line->say("report");
    return listen() && is_told_here();
  }));
}

TEST_F(TurnsTest, WhateverAWaiterMeetsItsTurnEnds) {
  ASSERT_TRUE(eventually([&] { return listen(); }));
  ASSERT_TRUE(eventually([&] {
    line->say("odd");
    return !listen();
  }));
  EXPECT_TRUE(eventually([&] {
    line->say("report");
    return listen() && is_told_here();
  }));
}

TEST_F(TurnsTest, WhateverIsThrownPastAWaiterItsTurnEnds) {
  ASSERT_TRUE(eventually([&] { return listen(); }));
  ASSERT_TRUE(eventually([&] {
    line->say("alien");
    try {
      listen();
      return false;
    } catch (int) {
      return true;
    }
  }));
  EXPECT_TRUE(eventually([&] { return line->opened > 1; }));
  EXPECT_TRUE(eventually([&] {
    line->say("report");
    return listen() && is_told_here();
  }));
}

TEST_F(TurnsTest, AReaderThatStandsAsideEnds) {
  ASSERT_TRUE(eventually([&] { return listen(); }));
  reader.reset();
  line->say("report");
  EXPECT_TRUE(heard().empty());
}

// Waiters come and go beside those who need the reader: each word is told once.
TEST_F(TurnsTest, OfManyTurnsNoWordIsLost) {
  std::atomic<bool> over{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) reader->listen(interrupt.descriptor(), BootClock::now() + 2ms);
    });
  }
  threads.emplace_back([&] {
    while (!over) {
      const Reader::Need need(*reader);
      std::this_thread::sleep_for(1ms);
    }
  });
  constexpr std::size_t kWords = 300;
  for (std::size_t i = 0; i < kWords; ++i) line->say(std::to_string(i));
  EXPECT_TRUE(eventually([&] { return heard().size() == kWords; }));
  over = true;
  threads.clear();
  const std::vector<std::string> all = heard();
  ASSERT_EQ(all.size(), kWords);
  for (std::size_t i = 0; i < kWords; ++i) EXPECT_EQ(all[i], std::to_string(i));
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
