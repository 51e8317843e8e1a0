#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simba/time.h"

// What clients saw and did, and what follows from it. All of it is pure: a history goes in, a
// verdict comes out. The clock is CLOCK_BOOTTIME of one host, which all of its processes share.
namespace simba::torture {

// What a client notes down: a look at its own ownership, a write to a register, or a callback.
struct Record {
  enum class Kind : std::uint32_t {
    kLook,
    kFenced,    // a write, applied: no larger token had written
    kRefused,   // a write, refused: a larger one had
    kUnfenced,  // a write to the register that takes everything
    kAcquired,  // on_acquired, from its begin to its end
    kReleased,  // on_released
  };
  LocalTime before{}, after{};  // the clock, read before and after
  Token token = 0;
  std::uint64_t term = 0;  // names the term: two of them with one token are two
  Token found = 0;         // of a write: the token that stood there
  Kind kind = Kind::kLook;
  bool is_in_ttl = false, is_owner = false;  // of a look: what the library answered
  bool is_told = false;                      // of a look: lost() was requested
  // Of a look that says so, late: how long those that tell it had waited for a processor since the
  // first look that said that the term is over (run_queue.h).
  nanoseconds waited{};
  std::uint64_t process = 0;  // of a callback
};

struct Lane {
  int client = 0;
  std::vector<Record> records;
};

// Of one mutex.
struct History {
  std::string mutex;
  std::vector<Lane> lanes;
};

struct Violation {
  std::string promise;  // "P1"
  std::string what;
  LocalTime at{};
  // Of P4: when the term was first seen to be over. Of an order: when what comes later had ended.
  LocalTime since{};
  // Of P1 and P1b: whose ownership outlived a newer one, and when it was first seen.
  Token superseded = 0;
  LocalTime first_seen{};
  bool is_of_time = false;  // what was promised came, too late
};

// The rules, each by every pair of records that could break it:
//   P1, P1b  once a look that said yes has ended, none with a smaller token that says yes may begin
//   P2       no two terms have one token
//   P3       once a fenced write of a term was applied, none of an earlier term may begin and be
//            applied. Which term is earlier is told by when each was first seen to own, not by the
//            tokens: the register goes by those itself
//   P4       the callbacks of a contender strictly alternate: one begins when the other has ended,
//   and
//            on_released is of the term that on_acquired was of
//   R4       once a look has said that a term owns no more, none says that it does
// P1 and P2 together say that the terms can be put in one order, in which each begins when the one
// before has ended and has a larger token: the history is that of a mutex. How soon a loss is told
// (P4) is in telling.h.
std::vector<Violation> check(const History& history);

// A term, as far as looks that said `is_in_ttl` show it.
struct Span {
  int client = 0;
  Token token = 0;
  LocalTime begin{}, end{};
};
std::vector<Span> spans(const History& history);  // by token

struct Writes {
  std::uint64_t fenced = 0, refused = 0, unfenced = 0;
  std::uint64_t lost = 0;  // unfenced ones that overwrote a newer owner's
};
Writes writes(const History& history);
std::uint64_t looks(const History& history);

// From `since` until an owner was seen; none: nobody was.
std::optional<nanoseconds> takeover(const History& history, LocalTime since);

}  // namespace simba::torture
