#include "torture/error_log.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "simba/memory.h"
#include "testing/faulty_store.h"
#include "testing/servers/directory.h"
#include "torture/recording_store.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using Origin = Trouble::Origin;

// Opens no watch.
class Watchless : public testing::FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  std::unique_ptr<Watch> watch(std::string_view, std::string_view, std::function<void()>) override {
    throw Error(Errc::kDenied, "no watch");
  }
};

class ErrorLogTest : public ::testing::Test {
 protected:
  LocalTime soon() const { return BootClock::now() + 5s; }
  void take() {
    const Claim ann{"m", "ann", 0, 0, 2'000ms, 1'000ms};
    store_.contend({&ann, 1}, soon());
  }
  std::uint64_t count(Errc errc) const {
    return ErrorLog(file_).counts().at(static_cast<std::size_t>(errc));
  }
  std::vector<Trouble> noted() const { return ErrorLog(file_).read(3); }

  const servers::Directory directory_;
  const std::filesystem::path file_ = directory_.path() / "errors";
  const std::shared_ptr<Watchless> inner_ = std::make_shared<Watchless>(make_memory());
  RecordingStore store_{inner_, std::make_shared<CallLog>(directory_.path() / "calls"),
                        std::make_shared<ErrorLog>(file_)};
};

TEST_F(ErrorLogTest, WhatAWholeCallFailsWithIsCountedAndWhatStaysIsKept) {
  const LocalTime before = BootClock::now();
  inner_->fail_before(Error(Errc::kTimeout, "late"), 2);
  EXPECT_THROW(take(), Error);
  EXPECT_THROW(take(), Error);
  inner_->fail_after(Error(Errc::kCorrupt, "a row makes no sense"));
  EXPECT_THROW(take(), Error);
  EXPECT_EQ(count(Errc::kTimeout), 2U);
  EXPECT_EQ(count(Errc::kCorrupt), 1U);
  const auto troubles = noted();
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_EQ(troubles[0].origin, Origin::kCall);
  EXPECT_EQ(troubles[0].errc, Errc::kCorrupt);
  EXPECT_EQ(troubles[0].client, 3);
  EXPECT_EQ(troubles[0].text, "a row makes no sense");
  EXPECT_GE(troubles[0].at, before);
}

TEST_F(ErrorLogTest, WhatOneClaimIsAnsweredIsAnErrorToo) {
  inner_->spoil("m", Error(Errc::kCorrupt, "of this row alone"));
  take();
  EXPECT_EQ(count(Errc::kCorrupt), 1U);
  ASSERT_EQ(noted().size(), 1U);
  EXPECT_EQ(noted()[0].text, "of this row alone");
}

TEST_F(ErrorLogTest, WhatIsNoErrorOfOursIsTakenForACorruptStore) {
  inner_->alter([](const testing::Asked::Claimed&, Answer&) { throw std::runtime_error("a bug"); });
  EXPECT_THROW(take(), std::runtime_error);
  EXPECT_EQ(count(Errc::kCorrupt), 1U);
  ASSERT_EQ(noted().size(), 1U);
  EXPECT_EQ(noted()[0].text, "a bug");
}

TEST_F(ErrorLogTest, NoCallIsLeftOut) {
  const Claim term{"m", "ann", 7, 0, 2'000ms, 1'000ms};
  const std::string_view name = "m";
  inner_->go_down(Error(Errc::kReplaced, "another file"));
  EXPECT_THROW(store_.contend({&term, 1}, soon()), Error);
  EXPECT_THROW(store_.release({&term, 1}, soon()), Error);
  EXPECT_THROW(store_.observe({&name, 1}, soon()), Error);
  EXPECT_THROW(store_.evict("m", "ann", 7, Eviction::kFreeNow, soon()), Error);
  EXPECT_EQ(count(Errc::kReplaced), 4U);
  EXPECT_THROW(store_.watch("m", {}, [] {}), Error) << "which the engine takes for no hints";
  EXPECT_EQ(count(Errc::kDenied), 1U);
}

TEST_F(ErrorLogTest, WhatTheLibraryThrowsAndSaysIsKeptBesideThem) {
  ErrorLog log(file_);
  log.note_thrown(Error(Errc::kTimeout, "the patience is over"));
  log.note_thrown(Error(Errc::kMisconfigured, "nothing is left of the lease"));
  log.note_line("a callback threw");
  const auto troubles = noted();
  ASSERT_EQ(troubles.size(), 2U);
  EXPECT_EQ(troubles[0].origin, Origin::kThrown);
  EXPECT_EQ(troubles[0].errc, Errc::kMisconfigured);
  EXPECT_EQ(troubles[1].origin, Origin::kLine);
  EXPECT_EQ(troubles[1].text, "a callback threw");
  EXPECT_EQ(log.counts(), ErrorCounts{}) << "no call failed";
}

TEST_F(ErrorLogTest, WhatWasNotedBeforeAProcessWasKilledIsThere) {
  const pid_t child = fork();
  if (child == 0) {
    ErrorLog(file_).note_call(Error(Errc::kCorrupt, "the last word"));
    raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(count(Errc::kCorrupt), 1U);
  ASSERT_EQ(noted().size(), 1U);
  EXPECT_EQ(noted()[0].text, "the last word");
}

TEST_F(ErrorLogTest, ThatIsFullGoesOnCounting) {
  ErrorLog log(file_);
  const std::string longer(2 * ErrorLog::kLongestText, 'x');
  for (std::size_t i = 0; i <= ErrorLog::kCapacity; ++i) log.note_call({Errc::kCorrupt, longer});
  EXPECT_EQ(count(Errc::kCorrupt), ErrorLog::kCapacity + 1);
  EXPECT_EQ(noted().size(), ErrorLog::kCapacity);
  EXPECT_EQ(noted().back().text, longer.substr(0, ErrorLog::kLongestText));
}

}  // namespace
}  // namespace simba::torture
