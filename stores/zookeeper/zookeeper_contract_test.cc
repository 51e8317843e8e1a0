#include <memory>
#include <string>

#include "simba/zookeeper.h"
#include "stores/kit/documented.h"
#include "stores/kit/server_contract.h"
#include "stores/zookeeper/zookeeper_fixture.h"

namespace simba::testing {
namespace {

// Stores of one process share their session: it is what a process has.
class ZookeeperContract : public ServerContract {
 public:
  ZookeeperContract() : ServerContract("zookeeper") {}

 protected:
  // Below a base that an operator has made for its user, as docs/zookeeper.md says.
  static constexpr const char* kBase = "base=/contract&acl=creator-read&";
  // Long enough for the leases of the suite: 90 s, and what the store keeps back.
  virtual std::string url() const {
    return server().url(server().is_shared() ? kBase + std::string("session-timeout=120000") : "");
  }

 private:
  static bool make_base(const std::string& servers) {
    const std::string page = kit::documented(SIMBA_DOCS "/zookeeper.md", "create /simba");
    std::string command = page.substr(page.find("create "));
    command.replace(command.find("/simba"), 6, "/contract");
    const int code = zookeeper::Raw(servers, "contender:secret").run(command);
    return code == ZOK || code == ZNODEEXISTS;  // made by another process of this suite
  }
  std::shared_ptr<Store> open() final {
    if (server().is_shared()) {
      static const bool is_made = make_base(zookeeper_options(server().url()).servers);
      EXPECT_TRUE(is_made);
    }
    return open_zookeeper(zookeeper_options(as("contender:secret", url())));
  }
};

// Each store has a session of its own, as those of several processes have: what one does, the
// others hear of from the server only.
class SessionsContract : public ZookeeperContract {
 protected:
  std::string url() const override {
    const std::string base = server().is_shared() ? kBase : "";
    return url_apart(base + "session-timeout=1200");  // 120,011 ms, 120,012 ms, ...
  }
};

SIMBA_CONTRACT(Zookeeper, [] { return std::make_unique<ZookeeperContract>(); })

// Cases in which two stores meet. Not among them are those in which a second store renews what a
// first one took, or is told when its lease ends: a term is its session's, and of another's only id
// and token are known.
[[maybe_unused]] const bool kAdded =
    add_contract("ZookeeperSessions", [] { return std::make_unique<SessionsContract>(); },
                 {
                     "ADeadOwnersMutexIsTakenOverAfterItsTransition",
                     "AHeldMutexIsNotTakenByAnother",
                     "AHundredClaimsAreAnsweredInOrder",
                     "ALateReleaseOfAnEarlierTermChangesNothing",
                     "AReleaseElsewhereWakesTheWaiter",
                     "AReleaseFreesTheMutex",
                     "AReleaseHandsOverByAHintAlone",
                     "AReleaseHandsOverWithinASafetyPollWhenTheHintIsLost",
                     "ATryOnAHeldMutexFailsAndLeavesNothingBehind",
                     "AWatchThatHasEndedNeverWakes",
                     "AWaiterGetsTheMutexWhenItIsUnlocked",
                     "AWaiterThatGaveUpLeavesNothingBehind",
                     "AnAmbiguousLockIsResolvedAndNotLeftBehind",
                     "AnEvictedLeadersWorkIsToldToStopAndGoesOnElsewhere",
                     "AnEvictedLockerHearsOfItAndItsUnlockHarmsNobody",
                     "AnEvictionElsewhereWakesTheWaiter",
                     "AnEvictionTakesTheNameAndKeepsTheLease",
                     "AnObserverLearnsThatALeaseRanOut",
                     "AnObserverSeesEveryOwnerAndWritesNothing",
                     "AnOwnerWhoseMutexWasFreedLearnsThatItLost",
                     "CriticalSectionsNeverOverlap",
                     "EveryConnectionSeesTheSameOwner",
                     "EveryWaiterGetsItsTurn",
                     "MultiContend",
                     "NobodyEntersBeforeTheTransitionEnds",
                     "OfManyWhoClaimAtOnceOneIsGranted",
                     "OnReleasedOfTheOldOwnerPrecedesOnAcquiredOfTheNext",
                     "OnlyTheLeaderRunsAndTheNextOneGoesOn",
                     "Original07AFailedRenewalEndsOwnershipBeforeTheNextOwnerBegins",
                     "TokensGrowOverReleasesExpiriesEvictionsAndReconnects",
                     "TwoContendersWithOneLabelAreTwo",
                 });

}  // namespace
}  // namespace simba::testing
