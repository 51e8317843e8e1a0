#pragma once

#include <cstdint>
#include <vector>

// How things are measured here.
//
// Two loops run one after the other differ by a factor for no reason. So raw and library take turns
// per operation, and the raw one is there twice: raw, ours, raw again, ours, ... What the two raw
// ones say of each other, the A/A figure, tells whether the run is worth anything.
namespace simba::bench {

std::int64_t now_ns() noexcept;

class Samples {
 public:
  void add(double value) {
    values_.push_back(value);
    sorted_ = false;
  }
  void add(const Samples& others);
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
  double mean() const;

 private:
  mutable std::vector<double> values_;
  mutable bool sorted_ = false;
};

// Nanoseconds per operation.
struct Duel {
  Samples raw, raw_again, ours;

  Samples both_raw() const;
  // Above 1: ours is faster.
  double ratio() const { return both_raw().median() / ours.median(); }
  double ratio_of_totals() const { return both_raw().mean() / ours.mean(); }
  double a_to_a() const { return raw.median() / raw_again.median(); }
  // Else it says nothing, of whatever.
  bool is_sound() const { return a_to_a() >= 0.99 && a_to_a() <= 1.01; }
};

template <class Operation>
double time_of(Operation& operation, int repeat) {
  const std::int64_t begin = now_ns();
  for (int i = 0; i < repeat; ++i) operation();
  return static_cast<double>(now_ns() - begin) / repeat;
}

// `repeat`: operations too short for the clock are timed in groups.
template <class Raw, class RawAgain, class Ours>
Duel duel(double seconds, Raw raw, RawAgain raw_again, Ours ours, int repeat = 1) {
  for (int i = 0; i < 50; ++i) raw(), ours(), raw_again(), ours();
  Duel duel;
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (now_ns() < end) {
    duel.raw.add(time_of(raw, repeat));
    duel.ours.add(time_of(ours, repeat));
    duel.raw_again.add(time_of(raw_again, repeat));
    duel.ours.add(time_of(ours, repeat));
  }
  return duel;
}

// This thread, and what it starts from now on, on one core; as before when this goes.
class Pinned {
 public:
  Pinned();
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  std::vector<unsigned char> before_;
};

// Of this process.
double cpu_seconds();
double resident_bytes();
int threads();

}  // namespace simba::bench
