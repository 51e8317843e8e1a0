#include "testing/contract_recorder.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace simba::testing {
namespace {

// The original's contract suite swallowed its own failures, because they were thrown on a callback
// thread.
TEST(RecorderTest, AViolationOnAnotherThreadFailsTheTest) {
  static Recorder recorder;
  std::thread([] { recorder.expect(false, "two owners"); }).join();
  EXPECT_NONFATAL_FAILURE(recorder.check(), "two owners");
}

TEST(RecorderTest, AnExceptionOnAnotherThreadFailsTheTest) {
  static Recorder recorder;
  std::thread([] { recorder.guard([] { throw std::runtime_error("lost"); }); }).join();
  EXPECT_NONFATAL_FAILURE(recorder.check(), "lost");
  std::thread([] { recorder.guard([] { throw 1; }); }).join();
  EXPECT_NONFATAL_FAILURE(recorder.check(), "an exception");
}

TEST(RecorderTest, EveryViolationIsTold) {
  Recorder recorder;
  recorder.report("one");
  recorder.report("two");
  EXPECT_EQ(recorder.violations(), (std::vector<std::string>{"one", "two"}));
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(&failures);
    recorder.check();
  }
  EXPECT_EQ(failures.size(), 2);
}

TEST(RecorderTest, WhatHoldsIsNotAViolation) {
  Recorder recorder;
  recorder.expect(true, "nothing");
  recorder.guard([] {});
  recorder.check();
  EXPECT_TRUE(recorder.violations().empty());
}

}  // namespace
}  // namespace simba::testing
