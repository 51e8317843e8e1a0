#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "simba/error.h"
#include "simba/export.h"
#include "simba/mutex_owner.h"
#include "simba/time.h"

// What a store has to do, so that the engine can do the rest: six calls, each claim one atomic step
// decided by the store's own clock.
//
// What a store does *not* do: it has no contention loop, no retry, no sleep, no timer; it never
// decides when to claim and never reads a wall clock of the client. It says what it saw, once,
// within the deadline.
namespace simba::inline v0 {

// One wish. A take (token 0) gets the mutex when it is free, that is when transition_at < now, or
// gets it again when this very wire id holds it and its lease runs: the same token, a new lease, so
// that a take whose answer was lost can be repeated. A renewal (token > 0) matches only this wire
// id, this token and a running lease; it never creates and never re-takes.
//
// Views into memory of the caller that lives as long as the call.
struct Claim {
  std::string_view mutex;
  std::string_view wire_id;
  Token token = 0;  // 0: take. Else renew (or release) this term
  Token floor = 0;  // a new term's token is above this: the highest the client has seen
  milliseconds ttl{};
  milliseconds transition{};

  bool renews() const { return token != 0; }
};

// The owner after the call, and the store's clock in the same answer.
struct Observation {
  MutexOwner owner;
  StoreTime now{};

  bool is_free() const { return owner.transition_at < now; }
};

// The row is locked by somebody else: nothing was done, nothing is known. The engine asks again,
// for this mutex alone.
struct Blocked {};

// What a store says of one claim. An Error here is of this claim alone; its neighbours are not
// affected. Trouble of the whole call is thrown.
using Answer = std::variant<Observation, Blocked, Error>;
using Answers = std::vector<Answer>;

// A hint that something changed. Destroying it ends the hints: after the destructor has returned,
// `wake` is not running and is not called again. Never destroyed by the engine inside `wake`.
class SIMBA_EXPORT Watch {
 public:
  virtual ~Watch() = default;
  // False while hints may be missing (the reader is reconnecting): the engine then polls more
  // often.
  virtual bool is_live() const { return true; }

  // A thread that only waits for this hint may listen in place of the store's reader: one thread
  // less is woken. Returns when something was heard (and the wakes were called), when `interrupt`
  // is readable or when `until` has come; false at once when that is not to be had, the default.
  virtual bool listen(int interrupt, LocalTime until);
  // Whether the store's reader has to listen for this watch, as it does at first. Quick, and calls
  // no wake.
  virtual void need_reader(bool needed);
};

struct StoreTraits {
  std::string name;                   // for errors and logs: "sqlite"
  std::size_t max_mutex_length = 66;  // bytes
  std::size_t max_wire_id_length = 128;
  bool queues_waiters =
      false;  // a take that is not granted leaves a place in a queue in the store;
              // waiters then ask by takes, and each watches under its own wire id
  bool forgets_expired = false;  // no record is left of a lease that has ended: nobody clears it
  std::string blocked_advice{};  // for errors and logs of a row that stays Blocked: where it is,
                                 // how to find out who locks it, and what to do about them
  const void* users_client = nullptr;  // what the user opened and this store works on: it has one
                                       // lock manager, whatever is made on top of it
};

struct Listed {
  std::string mutex;
  Observation observation;
};

enum class Eviction {
  kKeepLease,  // the owner's name goes, the end of its lease stays: nobody enters early
  kFreeNow,    // free at once: the evicted owner may still believe it owns
};

// Threads: any number of calls at once.
// Errors: trouble of a whole call is thrown as Error. kUnreachable and kTimeout are ambiguous: the
// store may have acted. An answer that makes no sense is kCorrupt, never ownership.
class SIMBA_EXPORT Store {
 public:
  virtual ~Store() = default;

  virtual const StoreTraits& traits() const = 0;

  // Claims of one call are sorted by mutex and hold each mutex once. One answer per claim, in
  // order.
  virtual Answers contend(std::span<const Claim> claims, LocalTime deadline) = 0;
  // Gives up the mutex, or the place in its queue, if this wire id has it; else does nothing. The
  // token stays known to the store. The content of a good answer has no meaning.
  virtual Answers release(std::span<const Claim> claims, LocalTime deadline) = 0;
  // Reads, never writes; needs no write permission. A mutex nobody ever took is MutexOwner::none().
  virtual Answers observe(std::span<const std::string_view> mutexes, LocalTime deadline) = 0;
  // Takes the ownership away from exactly this term, if it is still the owner. Returns the state
  // after it.
  virtual Observation evict(std::string_view mutex, std::string_view wire_id, Token token,
                            Eviction how, LocalTime deadline) = 0;
  // Calls `wake`, on any thread, after the mutex may have become free. That somebody took it wakes
  // nobody: who only watches learns of it when it asks. Waits for no server and no network; it may
  // open a file of this host. Null: this store cannot push; an exception is taken for that too.
  // `wire_id` is empty but for a store that queues.
  virtual std::unique_ptr<Watch> watch(std::string_view mutex, std::string_view wire_id,
                                       std::function<void()> wake) = 0;
  // A page of the mutexes whose names begin with `prefix`: those behind the name `after` (empty:
  // from the first), in the order of their bytes, at most `limit`. A page that is not full is the
  // last. Page after page, each behind the last name of the one before, names every mutex that is
  // there all the time exactly once, whatever comes and goes meanwhile.
  virtual std::vector<Listed> list(std::string_view prefix, std::string_view after,
                                   std::size_t limit, LocalTime deadline) = 0;

  // Throws Error (kMisconfigured) for a name or label this store cannot hold. The default checks
  // what holds everywhere: not blank, length, valid UTF-8, no control characters.
  virtual void check_mutex(std::string_view mutex) const;
  virtual void check_label(std::string_view label) const;
};

}  // namespace simba::inline v0
