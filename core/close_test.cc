// A close() that others come in between of.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "core/api_fixture.h"
#include "simba/contend_service.h"
#include "testing/gaps.h"

namespace simba {
namespace {

class CloseTest : public ApiTest {
 protected:
  const Client client{store, with(long_lease())};
};

// A callback that stops its own service, when it is told to or when that is stopped anyway, and
// goes on for a while.
struct Callback {
  std::atomic<bool> is_inside{false}, shall_stop{false}, has_stopped{false}, is_closed{false};
  std::atomic<int> running{0};

  void operator()(MutexRetrievalService& service) {
    ++running;
    is_inside = true;
    eventually([&] { return shall_stop || !service.running(); });
    if (service.running()) service.stop();
    has_stopped = true;
    const auto until = std::chrono::steady_clock::now() + 50ms;
    while (!is_closed && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    --running;
  }
  // It is told to at that place of close(). Returns how many places there are.
  int close(MutexRetrievalService& service, int stop_at) {
    EXPECT_TRUE(eventually([&] { return is_inside.load(); }));
    int places = 0;
    {
      const testing::Gaps gaps([&](int place) {
        if (place != stop_at) return;
        shall_stop = true;
        eventually([&] { return has_stopped.load(); });
      });
      service.close();
      places = gaps.count();
    }
    EXPECT_EQ(running, 0) << "closed, and still in a callback";
    is_closed = true;
    EXPECT_EQ(service.status(), Status::kInitial);
    return places;
  }
};

TEST_F(CloseTest, OutlastsTheCallbacksWheneverOneOfThemStopsTheService) {
  int places = 1;
  for (int place = 0; place < places; ++place) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "before lock " + std::to_string(place));
    Callback callback;
    std::atomic<bool> released{false};
    std::unique_ptr<MutexContendService> service;
    service = std::make_unique<MutexContendService>(
        client, make_contender("m", {[&](const MutexState&) { callback(*service); },
                                     [&](const MutexState&) { released = true; }}));
    service->start();
    places = std::max(places, callback.close(*service, place));
    EXPECT_TRUE(released);
    if (HasFailure()) return;
  }
  EXPECT_GT(places, 1) << "no locks pass by: is it linked with --wrap?";
}

TEST_F(CloseTest, OutlastsTheCallbackOfAnObserverThatStopsItself) {
  struct Watcher : MutexRetriever {
    const std::string name = "m";
    std::function<void()> then;
    const std::string& mutex() const override { return name; }
    void notify_owner(const MutexState&) override { then(); }
  };
  take("a");
  int places = 1;
  for (int place = 0; place < places; ++place) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "before lock " + std::to_string(place));
    Callback callback;
    const auto watcher = std::make_shared<Watcher>();
    MutexRetrievalService service(client, watcher, long_lease());
    watcher->then = [&] { callback(service); };
    service.start();
    places = std::max(places, callback.close(service, place));
    if (HasFailure()) return;
  }
  EXPECT_GT(places, 1) << "no locks pass by: is it linked with --wrap?";
}

}  // namespace
}  // namespace simba
