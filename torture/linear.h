#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simba/time.h"

// Whether what a store answered is what one lease object could have answered: the calls of all
// clients, each at one instant between its begin and its end, one after the other.
//
// The lease object of one mutex:
//   take       by an id, while nobody owns: it owns, under a token larger than all before. By the
//   id
//              that owns: the same token, a new lease. Else it only tells who owns
//   renewal    of the id and the token that own, before the lease's end: a new lease. Else it only
//              tells
//   release    ends the ownership of this id, of no other
//   observe    tells
//   eviction   takes the name from exactly this term; the lease stays, or goes too
//   the end of a lease comes by itself, any time after what was promised to the owner, never before
//
// A call whose answer nobody got (an error, a killed client) happens at any time after its begin,
// or never; nobody was promised anything by it.
namespace simba::torture {

// One claim of one call to a store. Ids and names are hashes.
struct Call {
  enum class Kind : std::uint32_t { kTake, kRenew, kRelease, kObserve, kEvict, kEvictFree };
  enum class Answer : std::uint32_t {
    kNone,      // an error, or none at all: it may still happen
    kBlocked,   // nothing was done, nothing is known
    kOwned,     // by `owner`, whose lease runs
    kNameless,  // a lease runs, of nobody: its owner was evicted
    kFree,
    kDone,  // of a release
  };
  LocalTime before{}, after{};  // the clock, before it was sent and after its answer
  std::uint64_t mutex = 0, id = 0;
  Token token = 0;  // of the term to renew, release or evict; 0: any
  std::uint64_t owner = 0;
  Token owner_token = 0;  // 0: the store did not say
  nanoseconds lease{};    // asked for
  nanoseconds left{};     // until the lease's end, by the answer
  nanoseconds age{};      // what it tells of others may be of so long before its begin
  Kind kind = Kind::kTake;
  Answer answer = Answer::kNone;
  int client = 0;

  bool is_contending() const { return kind == Kind::kTake || kind == Kind::kRenew; }
  // It is the owner by its own reply. Without a token nobody is.
  bool is_granted() const {
    const bool same_term = kind == Kind::kTake ? owner_token != 0 : owner_token == token;
    return is_contending() && answer == Answer::kOwned && owner == id && same_term;
  }
};

struct Period {
  LocalTime begin{}, end{};
};

// What the store at hand promises less, and what may be done to it.
struct LeaseRules {
  nanoseconds allowance{};  // so much sooner by our clock a lease may end: what clocks may be off
  bool queues = false;      // a take that was not granted may be granted later, unasked
  // From the kill of a server to the end of the longest lease that it can have promised: what it
  // had acknowledged may be forgotten.
  std::vector<Period> forgets;
  std::vector<Period> revives;  // a release that was acknowledged may be undone by then
  struct Step {
    LocalTime at{};
    nanoseconds by{};
  };
  std::vector<Step> steps;             // of the store's clock: one back makes leases longer
  std::size_t most_work = 20'000'000;  // calls looked at; beyond it nothing is decided
};

struct Order {
  enum class Verdict { kFound, kNone, kNotDecided };
  Verdict verdict = Verdict::kFound;
  // Where there is none: few calls that have none by themselves, whatever all others answered.
  std::vector<Call> culprits;
};

// Looks for an order of the calls of one mutex. How: order_search.h.
Order find_order(const std::vector<Call>& calls, const LeaseRules& rules);

// What is known of calls when some of them were not noted down from `cut` on: an answer that came
// later may follow from one of those.
std::vector<Call> until(std::vector<Call> calls, LocalTime cut);

// A line for people: "client 1 took for 1500 ms [0.120, 0.121]: granted, token 7".
std::string describe(const std::vector<Call>& calls, const std::vector<Call>& all, LocalTime began);

}  // namespace simba::torture
