#include "torture/drift.h"

#include <algorithm>

namespace simba::torture {
namespace {

std::optional<double> median(const Series& series, LocalTime from, LocalTime until) {
  std::vector<double> values;
  for (const Point& point : series.points) {
    if (point.at >= from && point.at < until) values.push_back(point.value);
  }
  if (values.size() < kFewestPoints) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<Drift> drift(const Series& series, LocalTime began, LocalTime ended) {
  const nanoseconds quarter = (ended - began) / 4;
  const auto early = median(series, began + quarter, began + 2 * quarter);
  const auto late = median(series, began + 3 * quarter, ended);
  if (!early || !late) return std::nullopt;
  return Drift{*early, *late, *early * (1 + series.share) + series.constant};
}

}  // namespace simba::torture
