#include "stores/kit/per_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>

#include "stores/kit/worker.h"

namespace simba::kit {
namespace {

using namespace std::chrono_literals;

struct Kept {};

std::shared_ptr<Kept> keep() {
  return PerProcess<Kept>::get("it", [] { return std::make_shared<Kept>(); });
}

// The exit code of a child; -1: it died, or there is none.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PerProcess, WhatIsKeptIsOneForAll) {
  const std::shared_ptr<Kept> mine = keep();
  EXPECT_EQ(keep(), mine);
  EXPECT_NE(PerProcess<Kept>::get("another", [] { return std::make_shared<Kept>(); }), mine);
}

TEST(PerProcess, AForkedChildKeepsItsOwn) {
  const std::shared_ptr<Kept> mine = keep();
  EXPECT_EQ(in_child([&] {
              const std::shared_ptr<Kept> own = keep();
              const int childs = in_child([&] { return keep() != own && keep() != mine ? 7 : 1; });
              return own != mine && keep() == own ? childs : 2;
            }),
            7);
  EXPECT_EQ(keep(), mine);
}

// The first process of each namespace has the number 1.
constexpr int kCannot = 9;
int as_number_one(const std::function<int()>& body) {
  return unshare(CLONE_NEWPID) == 0 ? in_child(body) : kCannot;
}

TEST(PerProcess, AForkedChildOfTheSameNumberKeepsItsOwn) {
  const int answer = in_child([&] {
    return as_number_one([&] {
      const std::shared_ptr<Kept> mine = keep();
      return as_number_one([&] { return getpid() == 1 && keep() != mine ? 7 : 1; });
    });
  });
  if (answer == kCannot) GTEST_SKIP() << "needs to make a namespace";
  EXPECT_EQ(answer, 7);
}

TEST(PerProcess, WhatAForkedChildOfTheSameNumberLeavesIsNotStoppedInItsParent) {
  const int answer = in_child([&] {
    return as_number_one([&] {
      auto worker = std::make_unique<Worker>("test-worker", [](const StopSignal& stop) {
        while (stop.pause(1h)) {
        }
      });
      const int child = as_number_one([&] {
        worker.reset();
        return 7;
      });
      return worker->stop().pause(0ms) ? child : 1;
    });
  });
  if (answer == kCannot) GTEST_SKIP() << "needs to make a namespace";
  EXPECT_EQ(answer, 7);
}

}  // namespace
}  // namespace simba::kit
