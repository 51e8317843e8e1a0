#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/api_fixture.h"
#include "simba/contend_service.h"

// Watching an owner without contending.
namespace simba {
namespace {

using Words = std::vector<std::string>;

class Watcher : public MutexRetriever {
 public:
  const std::string& mutex() const override { return mutex_; }
  void notify_owner(const MutexState& state) override {
    {
      const std::lock_guard lock(guard_);
      seen_.push_back(state.before.id + ">" + state.after.id);
    }
    if (state.is_acquired() || state.is_released() || state.is_owner()) owned = true;
    if (then) then();
  }
  Words seen() const {
    const std::lock_guard lock(guard_);
    return seen_;
  }
  std::function<void()> then;
  std::atomic<bool> owned{false};

 private:
  const std::string mutex_ = "m";
  mutable std::mutex guard_;
  Words seen_;  // guarded by guard_
};

class RetrievalServiceTest : public ApiTest {
 protected:
  Client client{store};
  const std::shared_ptr<Watcher> watcher = std::make_shared<Watcher>();
  MutexRetrievalService service{client, watcher, long_lease()};
};

TEST_F(RetrievalServiceTest, SeesOwnersComeAndGo) {
  EXPECT_EQ(service.status(), Status::kInitial);
  EXPECT_EQ(service.mutex(), "m");
  EXPECT_EQ(service.retriever(), watcher);
  take("a");
  service.start();
  EXPECT_TRUE(eventually([&] { return service.after_owner().id == "a"; }));
  EXPECT_EQ(service.status(), Status::kRunning);
  EXPECT_TRUE(service.has_owner());
  release("a");
  EXPECT_TRUE(eventually([&] { return !service.has_owner(); }));
  EXPECT_EQ(service.before_owner().id, "a");
  take("b");
  EXPECT_TRUE(eventually([&] { return service.after_owner().id == "b"; }));
  EXPECT_TRUE(eventually([&] { return watcher->seen() == Words{">a", "a>", ">b"}; }));
  service.stop();
  EXPECT_FALSE(watcher->owned);
  EXPECT_EQ(store->takes() + store->renewals() + store->releases(), 0u) << "it wrote";
}

TEST_F(RetrievalServiceTest, SeesALeaseEndWithoutAHint) {
  service.start();
  EXPECT_TRUE(eventually([&] {
    take("dead", 300ms, 0ms);  // again, should it have ended before it was seen
    return watcher->seen().size() > 0;
  }));
  EXPECT_EQ(watcher->seen().front(), ">dead");
  take("next");  // refused while the lease runs
  EXPECT_TRUE(eventually([&] {
    take("next");
    return service.after_owner().id == "next";
  }));
}

TEST_F(RetrievalServiceTest, AStoreThatIsAwayIsAskedAgain) {
  store->go_down();
  service.start();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(service.status(), Status::kStarting);
  take("a");
  store->heal();
  EXPECT_TRUE(eventually([&] { return service.after_owner().id == "a"; }));
}

TEST_F(RetrievalServiceTest, ItsRetrieverMayThrow) {
  watcher->then = [] { throw std::runtime_error("on purpose"); };
  take("a");
  service.start();
  EXPECT_TRUE(eventually([&] { return watcher->seen().size() == 1; }));
  release("a");
  EXPECT_TRUE(eventually([&] { return watcher->seen().size() == 2; }));
  service.stop();
}

TEST_F(RetrievalServiceTest, TheWrongStateIsAnErrorThatNamesIt) {
  EXPECT_THROW(service.stop(), Error);
  service.start();
  EXPECT_THROW(service.start(), Error);
  service.stop();
  try {
    service.stop();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::kMisuse);
    EXPECT_NE(std::string(error.what()).find("INITIAL"), std::string::npos);
  }
}

TEST_F(RetrievalServiceTest, StopsInItsCallbackAndStartsAgain) {
  take("a");
  watcher->then = [&] { service.stop(); };
  service.start();
  EXPECT_TRUE(eventually(
      [&] { return service.status() == Status::kInitial && watcher->seen().size() == 1; }));
  watcher->then = nullptr;
  service.start();
  EXPECT_TRUE(eventually([&] { return watcher->seen().size() == 2; }))
      << "a new life begins with no owner";
  service.stop();
}

TEST_F(RetrievalServiceTest, NoNoticeComesAfterStopHasReturned) {
  std::atomic<int> begun{0}, ended{0};
  watcher->then = [&] {
    ++begun;
    std::this_thread::sleep_for(200ms);
    ++ended;
  };
  take("a");
  service.start();
  ASSERT_TRUE(eventually([&] { return begun == 1; }));
  release("a");
  ASSERT_TRUE(eventually([&] { return !service.has_owner(); }));  // the second notice waits in line
  service.stop();
  EXPECT_EQ(ended, begun) << "stopped, and still in a callback";
  const int told = begun;
  std::this_thread::sleep_for(400ms);
  EXPECT_EQ(begun, told) << "told after stop()";
}

TEST_F(RetrievalServiceTest, ManyObserversOfOneMutexShareAQuestion) {
  take("a");
  std::vector<std::shared_ptr<Watcher>> watchers;
  std::vector<std::unique_ptr<MutexRetrievalService>> services;
  const auto factory = make_retrieval_service_factory(client, {});
  for (int i = 0; i < 20; ++i) {
    watchers.push_back(std::make_shared<Watcher>());
    services.push_back(factory->create_mutex_retrieval_service(watchers.back()));
    services.back()->start();
  }
  for (const auto& each : watchers)
    EXPECT_TRUE(eventually([&] { return each->seen() == Words{">a"}; }));
  release("a");
  for (const auto& each : watchers)
    EXPECT_TRUE(eventually([&] { return each->seen().size() == 2; }));
  services.clear();
  EXPECT_TRUE(eventually([&] { return store->watches() == 0; })) << "a watch was left behind";
}

}  // namespace
}  // namespace simba
