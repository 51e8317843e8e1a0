#include "torture/telling.h"

#include <algorithm>
#include <map>

#include "torture/linear.h"

namespace simba::torture {
namespace {

// The looks at one term that is over, up to the one that says that it was told.
struct Row {
  LocalTime since{}, last{};
  std::vector<Period> between;  // two looks
  int looks = 0;
  bool is_judged = false;
};

// How much of the time between the two lies in `periods`, which may overlap each other.
nanoseconds covered(const std::vector<Period>& periods, const Period& all) {
  nanoseconds sum{0};
  LocalTime at = all.begin;
  for (const Period& period : periods) {  // by their begins
    const LocalTime from = std::max(at, period.begin), until = std::min(all.end, period.end);
    if (until <= from) continue;
    sum += until - from;
    at = until;
  }
  return sum;
}

nanoseconds running(const Row& row, std::vector<Period> excused) {
  std::sort(excused.begin(), excused.end(),
            [](const Period& a, const Period& b) { return a.begin < b.begin; });
  nanoseconds sum{0};
  for (const Period& each : row.between) {
    const nanoseconds ran = each.end - each.begin - covered(excused, each);
    sum += std::clamp<nanoseconds>(ran, {}, kOverPace);
  }
  return sum;
}

void add(Row& row, const Record& record) {
  if (row.looks++ == 0) {
    row.since = record.after;
  } else {
    row.between.push_back({row.last, record.before});
  }
  row.last = record.after;
}

std::string whole_ms(nanoseconds span) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(span).count()) + " ms";
}

std::string text(const Row& row, const Record& end, nanoseconds running) {
  const std::string by_the_clock = whole_ms(row.last - row.since) + " by the clock";
  if (!end.is_told) return " was never told that it owns no more, for " + by_the_clock;
  return " was told that it owns no more after " + whole_ms(running) + " of running time (" +
         by_the_clock + ", " + whole_ms(end.waited) + " of it without a processor)";
}

// `end`: the look that says that it was told, or the last one.
void judge(const std::string& who, const Row& row, const Record& end,
           const std::vector<Stall>& stalls, std::vector<LateTelling>& into) {
  std::vector<Period> excused{{end.before - end.waited, end.before}};
  LateTelling late;
  late.running = running(row, excused);
  for (const Stall& stall : stalls) excused.push_back({stall.at - stall.length, stall.at});
  if (!end.is_told) {
    late.kind = LateTelling::Kind::kNever;
  } else if (late.running <= kTellsWithin) {
    return;
  } else if (running(row, std::move(excused)) <= kTellsWithin) {
    late.kind = LateTelling::Kind::kStalled;
  }
  late.violation.promise = "P4";
  late.violation.what = who + text(row, end, late.running);
  late.violation.at = row.last;
  late.violation.since = row.since;
  late.violation.is_of_time = late.kind != LateTelling::Kind::kNever;
  into.push_back(std::move(late));
}

}  // namespace

std::vector<LateTelling> late_tellings(const History& history, const std::vector<Stall>& stalls) {
  std::vector<LateTelling> found;
  for (const Lane& lane : history.lanes) {
    std::map<std::uint64_t, Row> rows;
    for (const Record& record : lane.records) {
      if (record.kind != Record::Kind::kLook || record.is_owner) continue;
      Row& row = rows[record.term];
      if (row.is_judged) continue;
      if (!record.is_told) add(row, record);
      row.is_judged = record.is_told || row.looks == kMostOverLooks;
      if (!row.is_judged) continue;
      const std::string who = history.mutex + ": client " + std::to_string(lane.client) +
                              " with token " + std::to_string(record.token);
      judge(who, row, record, stalls, found);
      row.between.clear();
    }
  }
  return found;
}

}  // namespace simba::torture
