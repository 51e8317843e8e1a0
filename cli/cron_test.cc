#include "cli/cron.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "cli/usage.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

class CronTest : public ::testing::Test {
 public:
  ~CronTest() override { set_zone("UTC"); }

 protected:
  CronTest() { set_zone("UTC"); }
  static void set_zone(const char* zone) {
    setenv("TZ", zone, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    tzset();
  }
  static std::time_t at(const char* text) {
    std::tm parts{};
    strptime(text, "%Y-%m-%d %H:%M:%S", &parts);
    parts.tm_isdst = -1;
    return std::mktime(&parts);
  }
  static std::string text(std::time_t time) {
    std::tm parts{};
    localtime_r(&time, &parts);
    char buffer[40];
    std::strftime(buffer, sizeof buffer, "%a %Y-%m-%d %H:%M", &parts);
    return buffer;
  }
  static std::string next(const char* expression, const char* after) {
    const auto time = Cron(expression).next(at(after));
    return time ? text(*time) : "never";
  }
  static std::string refusal(const char* expression) {
    try {
      const Cron cron(expression);
      return "accepted";
    } catch (const UsageError& error) {
      return error.what();
    }
  }
};

TEST_F(CronTest, FindsTheNextMinute) {
  EXPECT_EQ(next("* * * * *", "2026-11-15 20:31:02"), "Sun 2026-11-15 20:32");
  EXPECT_EQ(next("* * * * *", "2026-11-15 20:31:00"), "Sun 2026-11-15 20:32");
  EXPECT_EQ(next("*/5 * * * *", "2026-11-15 20:31:02"), "Sun 2026-11-15 20:35");
  EXPECT_EQ(next("*/5 * * * *", "2026-11-15 20:57:00"), "Sun 2026-11-15 21:00");
  EXPECT_EQ(next("5/20 * * * *", "2026-11-15 20:26:00"), "Sun 2026-11-15 20:45");
  EXPECT_EQ(next("0 3 * * *", "2026-11-15 03:00:00"), "Mon 2026-11-16 03:00");
  EXPECT_EQ(next("15,45 8-9 * * *", "2026-11-15 09:45:10"), "Mon 2026-11-16 08:15");
}

TEST_F(CronTest, AStepBeyondTheLastValueLeavesTheFirst) {
  EXPECT_EQ(next("5/2147483647 * * * *", "2026-11-15 20:05:00"), "Sun 2026-11-15 21:05");
  EXPECT_EQ(next("5-9/60 * * * *", "2026-11-15 20:05:00"), "Sun 2026-11-15 21:05");
  EXPECT_EQ(next("0 7/2147483641 * * *", "2026-11-15 07:00:00"), "Mon 2026-11-16 07:00");
}

TEST_F(CronTest, KnowsDaysMonthsAndTheirNames) {
  EXPECT_EQ(next("0 3 * * mon-fri", "2026-11-13 03:00:00"), "Mon 2026-11-16 03:00");
  EXPECT_EQ(next("0 3 * * 7", "2026-11-16 00:00:00"), "Sun 2026-11-22 03:00");
  EXPECT_EQ(next("0 3 * * SUN", "2026-11-16 00:00:00"), "Sun 2026-11-22 03:00");
  EXPECT_EQ(next("0 0 29 feb *", "2026-11-16 00:00:00"), "Tue 2028-02-29 00:00");
  EXPECT_EQ(next("0 0 31 * *", "2026-11-16 00:00:00"), "Thu 2026-12-31 00:00");
  EXPECT_EQ(next("@monthly", "2026-12-02 00:00:00"), "Fri 2027-01-01 00:00");
}

TEST_F(CronTest, ADayMatchesEitherFieldWhenBothChoose) {
  EXPECT_EQ(next("0 0 1 * mon", "2026-11-16 00:00:00"), "Mon 2026-11-23 00:00");
  EXPECT_EQ(next("0 0 1 * mon", "2026-11-30 00:00:00"), "Tue 2026-12-01 00:00");
  EXPECT_EQ(next("0 0 */2 * mon", "2026-11-16 00:00:00"), "Mon 2026-11-23 00:00")
      << "one that begins with * does not choose alone";
}

TEST_F(CronTest, ATimeThatClocksSkipDoesNotCome) {
  set_zone("Europe/Berlin");  // 2026-03-29: 02:00 is 03:00
  EXPECT_EQ(next("30 2 * * *", "2026-03-28 12:00:00"), "Mon 2026-03-30 02:30");
  EXPECT_EQ(next("0 * * * *", "2026-03-29 01:30:00"), "Sun 2026-03-29 03:00");
}

TEST_F(CronTest, ATimeThatClocksShowTwiceComesOnceAndEachHourIsAnHour) {
  set_zone("Europe/Berlin");  // 2026-10-25: 03:00 is 02:00
  const Cron at_half_past_two("30 2 * * *");
  const std::time_t first = *at_half_past_two.next(at("2026-10-24 12:00:00"));
  EXPECT_EQ(text(first), "Sun 2026-10-25 02:30");
  EXPECT_EQ(text(*at_half_past_two.next(first)), "Mon 2026-10-26 02:30");
  const Cron hourly("0 * * * *");
  const std::time_t two = *hourly.next(at("2026-10-25 01:30:00"));
  EXPECT_EQ(*hourly.next(two), two + 3600);
  EXPECT_EQ(text(two + 3600), "Sun 2026-10-25 02:00") << "again";
}

TEST_F(CronTest, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("60 * * * *"),
              HasSubstr("the minute is '60'; it can be *, numbers from 0 to 59"));
  EXPECT_THAT(refusal("* * 0 * *"), HasSubstr("day of the month is '0'"));
  EXPECT_THAT(refusal("* * * foo *"), HasSubstr("or names like feb"));
  EXPECT_THAT(refusal("5-2 * * * *"), HasSubstr("'5-2'"));
  EXPECT_THAT(refusal("*/0 * * * *"), HasSubstr("'*/0'"));
  EXPECT_THAT(refusal("1,,2 * * * *"), HasSubstr("'1,,2'"));
  EXPECT_THAT(refusal("* * * *"), HasSubstr("it has 4 fields, not 5"));
  EXPECT_THAT(refusal(""), HasSubstr("it has 0 fields"));
  EXPECT_THAT(refusal("5m"), HasSubstr("it has 1 field, not 5"));
  EXPECT_THAT(refusal("@often"), HasSubstr("is not known. It can be @hourly"));
  EXPECT_THAT(refusal("@dialy"), HasSubstr("did you mean '@daily'?"));
}

TEST_F(CronTest, ADayThatNeverComesIsRefused) {
  for (const char* never : {"0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *"}) {
    EXPECT_THAT(refusal(never), HasSubstr("that day never comes")) << never;
  }
  for (const char* comes : {"0 0 29 2 *", "0 0 31 4,5 *", "0 0 30 2 mon"}) {
    EXPECT_EQ(refusal(comes), "accepted") << comes;
  }
}

}  // namespace
}  // namespace simba::cli
