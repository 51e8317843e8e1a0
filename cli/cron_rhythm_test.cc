#include "cli/cron_rhythm.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace simba::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

class CronRhythmTest : public ::testing::Test {
 protected:
  CronRhythmTest() { set_zone("UTC"); }
  ~CronRhythmTest() override { set_zone("UTC"); }
  static void set_zone(const char* zone) {
    setenv("TZ", zone, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    tzset();
  }
  static CronRhythm::WallTime at(const char* text) {
    std::tm parts{};
    strptime(text, "%Y-%m-%d %H:%M:%S", &parts);
    parts.tm_isdst = -1;
    return std::chrono::system_clock::from_time_t(std::mktime(&parts));
  }
  static CronRhythm each_minute(const char* now) { return {Cron("* * * * *"), at(now)}; }
  static CronRhythm hourly(const char* now) { return {Cron("0 * * * *"), at(now)}; }
};

TEST_F(CronRhythmTest, TheNextIsDueWhenItsMinuteBegins) {
  CronRhythm rhythm = each_minute("2026-11-16 10:00:58");
  EXPECT_EQ(rhythm.until_next(at("2026-11-16 10:00:58")), 2s);
  EXPECT_EQ(rhythm.until_next(at("2026-11-16 10:00:59") + 250ms), 750ms);
  EXPECT_LE(rhythm.until_next(at("2026-11-16 10:01:00")), 0s);
  EXPECT_LE(rhythm.until_next(at("2026-11-16 10:01:03")), 0s) << "late, and due all the same";
}

TEST_F(CronRhythmTest, AMinuteHasOneRun) {
  CronRhythm rhythm = each_minute("2026-11-16 10:00:58");
  EXPECT_EQ(rhythm.ran(at("2026-11-16 10:01:03")), 0U);
  EXPECT_EQ(rhythm.until_next(at("2026-11-16 10:01:03")), 57s);
}

TEST_F(CronRhythmTest, WhatALongRunMissesIsCountedAndTheMinuteThatIsNowIsNot) {
  CronRhythm rhythm = each_minute("2026-11-16 10:00:58");
  EXPECT_EQ(rhythm.ran(at("2026-11-16 10:04:10")), 2U) << "10:02 and 10:03";
  EXPECT_LE(rhythm.until_next(at("2026-11-16 10:04:10")), 0s) << "10:04";
  EXPECT_EQ(rhythm.ran(at("2026-11-16 10:04:20")), 0U);
  EXPECT_EQ(rhythm.until_next(at("2026-11-16 10:04:20")), 40s);
}

TEST_F(CronRhythmTest, WhatWentByWhileNobodyLookedIsCountedAndNotMadeUpFor) {
  CronRhythm rhythm = hourly("2026-11-16 10:30:00");
  EXPECT_EQ(rhythm.skip(at("2026-11-16 10:59:59")), 0U);
  EXPECT_EQ(rhythm.skip(at("2026-11-16 12:00:20")), 2U) << "the hour of this minute too";
  EXPECT_EQ(rhythm.skip(at("2026-11-16 12:00:30")), 0U) << "said once";
  EXPECT_EQ(rhythm.until_next(at("2026-11-16 12:00:30")), 59min + 30s);
}

TEST_F(CronRhythmTest, CountingEnds) {
  CronRhythm rhythm = each_minute("2026-11-16 10:00:58");
  EXPECT_EQ(rhythm.skip(at("2099-01-01 00:00:30")), CronRhythm::kMostCounted);
  EXPECT_EQ(rhythm.until_next(at("2099-01-01 00:00:30")), 30s);
}

TEST_F(CronRhythmTest, AClockThatIsSetBackBringsTheNextTimeNearer) {
  CronRhythm rhythm = hourly("2026-11-16 10:59:00");
  EXPECT_EQ(rhythm.ran(at("2026-11-16 11:00:10")), 0U);
  EXPECT_EQ(rhythm.until_next(at("2025-11-16 11:00:20")), 59min + 40s) << "not in a year";
  EXPECT_EQ(rhythm.until_next(at("2025-11-16 11:59:59")), 1s);
}

TEST_F(CronRhythmTest, ASmallStepBackRunsNothingTwice) {
  CronRhythm rhythm = each_minute("2026-11-16 10:00:58");
  EXPECT_EQ(rhythm.ran(at("2026-11-16 10:01:00")), 0U);
  EXPECT_EQ(rhythm.until_next(at("2026-11-16 10:00:59")), 61s) << "10:01 was run";
}

TEST_F(CronRhythmTest, TheHourThatClocksShowTwiceHasOneRun) {
  set_zone("Europe/Berlin");
  CronRhythm rhythm{Cron("30 2 * * *"), at("2026-10-25 01:00:00")};
  const auto first = at("2026-10-25 01:59:59") + 31min;  // 02:30, summer time still
  EXPECT_LE(rhythm.until_next(first), 0s);
  EXPECT_EQ(rhythm.ran(first + 40min), 0U) << "it is 02:10 again";
  EXPECT_GT(rhythm.until_next(first + 40min), 20h);
}

}  // namespace
}  // namespace simba::cli
