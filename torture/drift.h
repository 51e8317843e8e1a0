#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simba/time.h"

// Whether something grows, told from samples of it. Pure.
namespace simba::torture {

struct Point {
  LocalTime at{};
  double value = 0;
};

// One thing that was measured again and again: of a client, or of the store.
struct Series {
  std::string name, unit;
  int client = -1;                 // -1: of the store
  double share = 0, constant = 0;  // by how much it may grow
  std::vector<Point> points;
};

// The median of the second quarter of the time, that of the last, and what that may be. The first
// quarter is left out: pools and caches fill.
//
//   allowed = early + share * early + constant
struct Drift {
  double early = 0, late = 0, allowed = 0;
  bool is_flat() const { return late <= allowed; }
};

inline constexpr std::size_t kFewestPoints = 3;  // in either of the quarters

// None: too few points to say.
std::optional<Drift> drift(const Series& series, LocalTime began, LocalTime ended);

}  // namespace simba::torture
