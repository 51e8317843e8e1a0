#pragma once

#include <bitset>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace simba::cli {

// A cron expression: minute, hour, day of the month, month, day of the week, in local time.
//
//   */5 * * * *       0 3 * * mon-fri       30 2 1,15 * *       @daily
//
// As with cron, a day matches either of the two day fields when both are given. When clocks are set
// forward, the times they skip do not come; set back, a time with given hours comes once.
class Cron {
 public:
  // Throws UsageError that names the field and what it can be.
  explicit Cron(std::string_view expression);

  // The first matching minute after `now`; none within the next eight years.
  std::optional<std::time_t> next(std::time_t now) const;

 private:
  bool has_day() const;  // a day of one of its months
  bool matches_day(const std::tm& at) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  bool any_hour_ = false, any_day_ = false, any_weekday_ = false;
};

}  // namespace simba::cli
