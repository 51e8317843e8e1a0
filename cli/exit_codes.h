#pragma once

namespace simba::cli {

// What `simba` itself exits with. A program under `simba run` passes its own status through, so
// these come from sysexits.h, away from what programs and shells use: 126 (cannot be started), 127
// (not found), 128 + n (ended by signal n).
namespace exit_code {
inline constexpr int kOk = 0;
inline constexpr int kFree = 1;          // show, release: nobody holds the mutex
inline constexpr int kUnfit = 1;         // doctor: something failed
inline constexpr int kBroken = 1;        // torture: a promise does not hold
inline constexpr int kUsage = 64;        // the command line, an option or a name is wrong
inline constexpr int kUnavailable = 69;  // the store cannot be used
inline constexpr int kLost = 70;         // run: ownership ended first, the program was ended
inline constexpr int kUnguarded = 71;    // run: the guardian is gone, the program was ended
// run: somebody else holds the mutex; release: its owner holds it still; trying later may help
inline constexpr int kNotAcquired = 75;
inline constexpr int kCannotStart = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kSignalled = 128;  // plus the signal's number
}  // namespace exit_code

}  // namespace simba::cli
