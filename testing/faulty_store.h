#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simba/store.h"

// Any store, with trouble on request, and a record of what it was asked.
//
//   FaultyStore store{make_memory()};
//   store.fail_after(Error(Errc::kTimeout, "lost answer"));   // the next call acts, and says
//   nothing
namespace simba::testing {

// One call that arrived.
struct Asked {
  enum class What { kContend, kRelease, kObserve };
  struct Claimed {
    std::string mutex, wire_id;
    Token token = 0, floor = 0;
    milliseconds ttl{}, transition{};
  };
  What what{};
  std::vector<Claimed> claims;  // of a question only the mutex
  LocalTime deadline{};

  bool is_take() const;
  bool is_renewal() const;
};

// Threads: any. Faults are of the next calls, whoever makes them.
class FaultyStore : public Store {
 public:
  explicit FaultyStore(std::shared_ptr<Store> store);

  // The next `times` calls throw: before the store acts, or after it did, so that what it did is
  // unknown to the caller.
  void fail_before(Error error, std::size_t times = 1);
  void fail_after(Error error, std::size_t times = 1);
  // Every call throws, from now until heal().
  void go_down(Error error = Error(Errc::kUnreachable, "the store is down"));
  void heal();

  // Until it is taken back: the row of this mutex is locked by somebody else.
  void block(std::string mutex);
  void unblock(const std::string& mutex);
  // Its claims are answered with this error, their neighbours are not affected; or the call that
  // holds one of them throws it as a whole. Nothing is done to the mutex.
  void spoil(std::string mutex, Error error);
  void spoil_whole_call(std::string mutex, Error error);
  void unspoil(const std::string& mutex);
  // Has the last word about every answer.
  void alter(std::function<void(const Asked::Claimed&, Answer&)> last_word);

  // No hint arrives any more; or there are none to expect.
  void drop_hints();
  void cannot_push();
  // The watches that exist say that they are dead.
  void end_hints();
  // A hint out of the blue.
  void hint(std::string_view mutex);
  // For a store that queues waiters, and for limits.
  void set_traits(StoreTraits traits);

  std::vector<Asked> asked() const;
  std::size_t calls() const;
  std::size_t takes() const;  // calls, not claims
  std::size_t renewals() const;
  std::size_t releases() const;
  std::size_t questions() const;
  std::size_t watches() const;  // that exist now
  void forget();                // what was asked so far

  const StoreTraits& traits() const override { return traits_; }
  Answers contend(std::span<const Claim> claims, LocalTime deadline) override;
  Answers release(std::span<const Claim> claims, LocalTime deadline) override;
  Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) override;
  Observation evict(std::string_view mutex, std::string_view wire_id, Token token, Eviction how,
                    LocalTime deadline) override;
  std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                               std::function<void()> wake) override;
  std::vector<Listed> list(std::string_view prefix, std::string_view after, std::size_t limit,
                           LocalTime deadline) override;

 private:
  class HintTicket;
  struct Hints {
    std::mutex guard;
    std::multimap<std::string, std::function<void()>, std::less<>> wakes;  // guarded by guard
    bool dropped = false;                                                  // guarded by guard
    std::atomic<bool> ended{false};
  };
  struct Fault {
    Error error;
    bool acts;
  };

  // `act` answers the claims at these places.
  Answers answer(Asked asked, const std::function<Answers(const std::vector<std::size_t>&)>& act);
  std::optional<Fault> next_fault(const Asked& asked);
  void refuse_while_down() const;
  std::size_t count(const std::function<bool(const Asked&)>& matches) const;

  const std::shared_ptr<Store> store_;
  const std::shared_ptr<Hints> hints_ = std::make_shared<Hints>();
  StoreTraits traits_;
  bool pushes_ = true;

  mutable std::mutex guard_;
  std::vector<Asked> asked_;  // guarded by guard_, as all below
  std::deque<Fault> faults_;
  std::optional<Error> down_;
  std::set<std::string> blocked_;
  std::map<std::string, Error> spoilt_, poisonous_;
  std::function<void(const Asked::Claimed&, Answer&)> last_word_;
};

}  // namespace simba::testing
