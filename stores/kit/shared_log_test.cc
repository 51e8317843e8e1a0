#include "stores/kit/shared_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace simba::kit {
namespace {

struct Lines {
  std::vector<std::string> all;
  LogSink sink() {
    return [this](LogLevel, std::string_view line) { all.emplace_back(line); };
  }
};

TEST(SharedLogTest, ALineIsSaidOnceToTheOldestThatIsLeft) {
  const auto log = std::make_shared<SharedLog>();
  const LogSink say = SharedLog::sink_of(log);
  Lines first, second;
  say(LogLevel::kInfo, "nobody hears");
  EXPECT_EQ(SharedLog::add(log, {}), nullptr);
  auto a = SharedLog::add(log, first.sink()), b = SharedLog::add(log, second.sink());
  say(LogLevel::kInfo, "one");
  a.reset();
  say(LogLevel::kInfo, "two");
  b.reset();
  say(LogLevel::kInfo, "nobody hears");
  EXPECT_EQ(first.all, std::vector<std::string>{"one"});
  EXPECT_EQ(second.all, std::vector<std::string>{"two"});
}

TEST(SharedLogTest, TheEndOfATicketWaitsForACallThatRuns) {
  const auto log = std::make_shared<SharedLog>();
  std::atomic<bool> began{false}, go{false}, done{false};
  auto ticket = SharedLog::add(log, [&](LogLevel, std::string_view) {
    began = true;
    began.notify_all();
    go.wait(false);
    done = true;
  });
  std::jthread speaker([&] { (*log)(LogLevel::kInfo, "slow"); });
  began.wait(false);
  std::jthread releaser([&] {
    go = true;
    go.notify_all();
  });
  ticket.reset();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace simba::kit
