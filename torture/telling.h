#pragma once

#include <vector>

#include "torture/history.h"
#include "torture/stall.h"

// P4: how soon who has lost a mutex is told so, by `lost()`. Pure.
namespace simba::torture {

inline constexpr milliseconds kTellsWithin{50};  // of running time

// Between two looks at a term that is over and was not told so yet. Of the time in between so much
// counts as running time: for longer a client sleeps only when it is stopped, or others run.
inline constexpr milliseconds kOverPace{5};
// After so many of them a client gives up: the term is never told, and nothing excuses that.
inline constexpr int kMostOverLooks = 400;

// A term that was told too late that it is over, or never.
struct LateTelling {
  enum class Kind {
    kLate,
    kStalled,  // it was in time but for what the machine stood still
    kNever,
  };
  Kind kind = Kind::kLate;
  nanoseconds running{};  // time from the first look that said over to the last that said not told
  Violation violation;
};

// Running time is what passes between two looks, kOverPace of it at most, without what a thread
// that tells it stood in the queue for a processor. Of a stall no more than its own length is left
// out. A term that neither was told nor given up is not judged: its client was killed.
std::vector<LateTelling> late_tellings(const History& history, const std::vector<Stall>& stalls);

}  // namespace simba::torture
