#include "testing/contract_engine.h"

// Watching an owner without contending.
namespace simba::testing {

void link_observer_cases() {}

namespace {

SIMBA_CASE(EngineContract, AnObserverSeesEveryOwnerAndWritesNothing) {
  const auto faulty = connect_faulty();
  const auto watcher = std::make_shared<Witness>(name(), recorder);
  ContendOptions options = calm();
  options.safety_poll = 50ms;
  MutexRetrievalService observer(client_on(faulty), watcher, options);
  observer.start();
  EXPECT_TRUE(eventually([&] { return observer.status() == Status::kRunning; }));
  EXPECT_FALSE(observer.has_owner());
  std::vector<std::string> owners;
  for (int round = 0; round < 3; ++round) {
    owners.push_back(wire_id());
    take_when_free(*store, name(), owners.back());
    ASSERT_TRUE(eventually([&] { return observer.after_owner().id == owners.back(); }));
    EXPECT_TRUE(observer.has_owner());
    release(*store, name(), owners.back());
    ASSERT_TRUE(eventually([&] { return !observer.has_owner(); }));
  }
  EXPECT_TRUE(eventually([&] { return watcher->notices().size() == 6; }));
  observer.stop();
  std::string before;
  std::vector<std::string> seen_owners;
  for (const Notice& notice : watcher->notices()) {
    EXPECT_EQ(notice.kind, Notice::Kind::kOther) << "an observer owns nothing";
    EXPECT_EQ(notice.state.before.id, before);
    before = notice.state.after.id;
    if (!before.empty()) seen_owners.push_back(before);
  }
  EXPECT_EQ(seen_owners, owners);
  EXPECT_EQ(faulty->takes() + faulty->renewals() + faulty->releases(), 0u) << "it wrote";
}

SIMBA_CASE(EngineContract, AnObserverLearnsThatALeaseRanOut) {
  const auto watcher = std::make_shared<Witness>(name(), recorder);
  MutexRetrievalService observer(client(), watcher, calm());
  const std::string dead = wire_id("dead");
  observer.start();
  ASSERT_TRUE(eventually([&] {  // again, where the lease was over before anybody looked
    if (observe(*store, name()).is_free()) take(*store, name(), dead, 800ms, 400ms);
    return !watcher->notices().empty();
  }));
  EXPECT_EQ(watcher->notices()[0].state.after.id, dead);
  const std::string next = wire_id("next");
  take_when_free(*store, name(), next);
  EXPECT_TRUE(eventually([&] { return observer.after_owner().id == next; }));
  observer.stop();
}

}  // namespace
}  // namespace simba::testing
