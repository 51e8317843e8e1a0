#include "testing/contract_recorder.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "simba/memory.h"
#include "testing/contract_case.h"

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

class MemoryStores : public StoreContract {
 public:
  std::shared_ptr<Store> connect() override { return make_memory(); }
};

// A case as the suite runs it, whose violation is seen on another thread and by nobody else.
class CaseWithAViolation : public ContractTest {
 public:
  void run() {
    set_up("CaseWithAViolation", [] { return std::make_unique<MemoryStores>(); });
    SetUp();
    TestBody();
    TearDown();
  }

 private:
  void TestBody() override {
    std::thread([this] { recorder.expect(false, "two owners"); }).join();
  }
};

TEST(RecorderTest, AViolationOnAnotherThreadFailsTheCaseOfTheSuite) {
  static CaseWithAViolation running;
  EXPECT_NONFATAL_FAILURE(running.run(), "two owners");
}

}  // namespace
}  // namespace simba::testing
