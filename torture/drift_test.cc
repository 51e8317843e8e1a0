#include "torture/drift.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "torture/soak.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

LocalTime at_second(int seconds) { return LocalTime{std::chrono::seconds{seconds}}; }

// A hundred samples, one a second; a tenth and three may be added.
class DriftTest : public ::testing::Test {
 protected:
  static Series measured(const std::function<double(int)>& value) {
    Series series{"descriptors", "", 0, 0.1, 3, {}};
    for (int second = 0; second < 100; ++second) {
      series.points.push_back({at_second(second), value(second)});
    }
    return series;
  }
  static std::optional<Drift> drift_of(const Series& series) {
    return drift(series, at_second(0), at_second(100));
  }
};

TEST_F(DriftTest, WhatStaysIsFlat) {
  const auto found = drift_of(measured([](int) { return 20; }));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_flat());
  EXPECT_DOUBLE_EQ(found->allowed, 25);
}

TEST_F(DriftTest, WhatGrowsByMoreThanIsAllowedIsNot) {
  EXPECT_TRUE(drift_of(measured([](int second) { return 20 + second * 0.1; }))->is_flat());
  EXPECT_FALSE(drift_of(measured([](int second) { return 20 + second * 0.2; }))->is_flat());
}

TEST_F(DriftTest, TheBeginningDoesNotCount) {
  EXPECT_TRUE(drift_of(measured([](int second) { return second < 25 ? second : 25; }))->is_flat());
}

TEST_F(DriftTest, APeakIsNoGrowth) {
  EXPECT_TRUE(drift_of(measured([](int second) {
                return second > 80 && second < 90 ? 500 : 20;
              }))->is_flat());
}

TEST_F(DriftTest, TooFewSamplesSayNothing) {
  Series series = measured([](int) { return 20; });
  series.points.resize(70);
  EXPECT_FALSE(drift_of(series)) << "none in the last quarter";
}

// Two clients, of which the second one grows.
class SoakTest : public DriftTest {
 protected:
  SoakTest() {
    soaked.began = at_second(0);
    soaked.ended = at_second(100);
    soaked.every = 1s;
    soaked.series = {measured([](int) { return 20; }), measured([](int s) { return 20 + s; })};
    soaked.series[1].client = 1;
    soaked.acquisitions.points = {{at_second(50), 7}};
  }
  const Title title{"redis", "again", {}};
  Soaked soaked;
};

TEST_F(SoakTest, OneClientThatGrowsIsNamed) {
  const std::string text = as_text(title, soaked);
  EXPECT_THAT(text, HasSubstr("redis: GROWS"));
  EXPECT_THAT(text, HasSubstr("descriptors   57 -> 107, allowed 66, client 1: GROWS"));
  soaked.series.pop_back();
  EXPECT_THAT(as_text(title, soaked), HasSubstr("redis: flat"));
}

TEST_F(SoakTest, NothingMeasuredIsNotFlat) {
  soaked.series.clear();
  EXPECT_THAT(as_text(title, soaked), HasSubstr("redis: GROWS"));
}

TEST_F(SoakTest, AStoreThatNeverAnsweredIsNotFlat) {
  soaked.series.pop_back();
  soaked.is_counted = true;
  EXPECT_THAT(as_text(title, soaked), HasSubstr("redis: GROWS\n  store         NEVER ANSWERED"));
  soaked.series.push_back({"keys", "", -1, 0, 0, {}});
  EXPECT_THAT(as_text(title, soaked), HasSubstr("keys          TOO FEW SAMPLES (0)"));
  EXPECT_FALSE(is_flat(soaked));
  soaked.series.back().points = soaked.series.front().points;
  EXPECT_TRUE(is_flat(soaked));
}

TEST_F(SoakTest, TheJsonHasEveryPoint) {
  const auto json = nlohmann::json::parse(as_json(title, soaked, {}, R"({"holds":true})"));
  EXPECT_EQ(json["flat"], false);
  EXPECT_EQ(json["attack"]["holds"], true);
  EXPECT_EQ(json["series"][1]["flat"], false);
  EXPECT_EQ(json["series"][1]["points"].size(), 100U);
}

TEST_F(SoakTest, ThePictureShowsFaultsAndWhatGrows) {
  const std::vector<Fault> faults{{FaultKind::kStop, 0, at_second(10), at_second(12)}};
  const std::string picture = as_picture(title, soaked, faults);
  EXPECT_THAT(picture, HasSubstr("<title>stop</title>"));
  EXPECT_THAT(picture, HasSubstr("client 1 grows"));
  soaked.series.pop_back();
  EXPECT_THAT(as_picture(title, soaked, faults), Not(HasSubstr("grows")));
}

}  // namespace
}  // namespace simba::torture
