#include "torture/soak.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "testing/servers/directory.h"
#include "torture/attack.h"
#include "torture/sampler.h"
#include "torture/svg.h"

namespace simba::torture {
namespace {

using namespace std::chrono_literals;

constexpr int kSamples = 400;
constexpr nanoseconds kOftenest = 250ms, kSeldomest = 10s;
constexpr int kBars = 100;  // of the acquisitions

double seconds(nanoseconds span) { return std::chrono::duration<double>(span).count(); }

Series acquisitions(const Outcome& outcome, const Soaked& soaked) {
  Series series;
  series.name = "acquisitions";
  series.unit = "per second";
  const nanoseconds width = std::max<nanoseconds>((soaked.ended - soaked.began) / kBars, 1s);
  const auto bars = static_cast<std::size_t>((soaked.ended - soaked.began) / width);
  for (std::size_t bar = 0; bar < bars; ++bar) {
    series.points.push_back({soaked.began + static_cast<int>(bar) * width + width / 2, 0});
  }
  for (const History& history : outcome.histories) {
    for (const Span& span : spans(history)) {
      const auto bar = static_cast<std::size_t>(
          std::max<nanoseconds::rep>(0, (span.begin - soaked.began) / width));
      if (span.begin >= soaked.began && bar < bars) series.points[bar].value += 1 / seconds(width);
    }
  }
  return series;
}

std::string whole(double value) { return std::to_string(std::llround(value)); }

// Of each name the worst: what came nearest to what is allowed, or is beyond.
double badness(const Growth& growth) {
  if (!growth.drift) return std::numeric_limits<double>::infinity();
  return growth.drift->late / std::max(growth.drift->allowed, 1.0);
}

std::vector<Growth> worst(const std::vector<Growth>& all) {
  std::vector<Growth> found;
  for (const Growth& growth : all) {
    if (found.empty() || found.back().series->name != growth.series->name) {
      found.push_back(growth);
    } else if (badness(growth) > badness(found.back())) {
      found.back() = growth;
    }
  }
  return found;
}

std::string line(const Growth& growth) {
  const Series& series = *growth.series;
  std::string text =
      "  " + series.name + std::string(14 - std::min<std::size_t>(13, series.name.size()), ' ');
  if (!growth.drift) {
    return text + "TOO FEW SAMPLES (" + std::to_string(series.points.size()) +
           "): make the run longer\n";
  }
  text += whole(growth.drift->early) + " -> " + whole(growth.drift->late) +
          (series.unit.empty() ? "" : ' ' + series.unit) + ", allowed " +
          whole(growth.drift->allowed);
  if (series.client >= 0) text += ", client " + std::to_string(series.client);
  return text + (growth.is_flat() ? "\n" : ": GROWS\n");
}

bool lacks_the_store(const Soaked& soaked) {
  return soaked.is_counted && std::none_of(soaked.series.begin(), soaked.series.end(),
                                           [](const Series& each) { return each.client < 0; });
}

}  // namespace

std::vector<Growth> judge(const Soaked& soaked) {
  std::vector<Growth> growths;
  for (const Series& series : soaked.series) {
    growths.push_back({&series, drift(series, soaked.began, soaked.ended)});
  }
  return growths;
}

bool is_flat(const Soaked& soaked) {
  const std::vector<Growth> growths = judge(soaked);
  return !growths.empty() && !lacks_the_store(soaked) &&
         std::all_of(growths.begin(), growths.end(),
                     [](const Growth& growth) { return growth.is_flat(); });
}

std::string as_text(const Title& title, const Soaked& soaked) {
  const std::vector<Growth> growths = judge(soaked);
  std::string text = title.store + ": " + (is_flat(soaked) ? "flat" : "GROWS") + '\n';
  if (lacks_the_store(soaked))
    text += "  store         NEVER ANSWERED: nothing of it was counted\n";
  for (const Growth& growth : worst(growths)) text += line(growth);
  double sum = 0;
  for (const Point& point : soaked.acquisitions.points) sum += point.value;
  const auto bars =
      static_cast<double>(std::max<std::size_t>(1, soaked.acquisitions.points.size()));
  return text + "  acquisitions  " + number(sum / bars) + " per second, sampled every " +
         number(seconds(soaked.every)) + " s for " + number(seconds(soaked.ended - soaked.began)) +
         " s\n";
}

std::string as_json(const Title& title, const Soaked& soaked, const Plan& plan,
                    const std::string& attack) {
  const std::vector<Growth> growths = judge(soaked);
  nlohmann::ordered_json json{{"store", title.store},
                              {"flat", is_flat(soaked)},
                              {"seconds", seconds(soaked.ended - soaked.began)},
                              {"sampled_every_s", seconds(soaked.every)},
                              {"long_lived_clients", plan.survivors}};
  const auto add = [&](const Series& series, const std::optional<Drift>& drift, bool is_judged) {
    nlohmann::ordered_json each{{"name", series.name}, {"unit", series.unit}};
    if (series.client >= 0) each["client"] = series.client;
    if (drift) {
      each["second_quarter"] = drift->early;
      each["last_quarter"] = drift->late;
      each["allowed"] = drift->allowed;
    }
    if (is_judged) each["flat"] = drift && drift->is_flat();
    for (const Point& point : series.points) {
      each["points"].push_back({seconds(point.at - soaked.began), point.value});
    }
    json["series"].push_back(std::move(each));
  };
  for (const Growth& growth : growths) add(*growth.series, growth.drift, true);
  add(soaked.acquisitions, std::nullopt, false);
  json["attack"] = nlohmann::ordered_json::parse(attack);
  json["command"] = title.command;
  return json.dump() + '\n';
}

SoakReport soak(const Target& target, Plan plan, const std::string& command) {
  static_cast<void>(Timing::of(plan.options()));  // says what is wrong with it
  const servers::Directory directory;
  plan.directory = directory.path();
  Sampler sampler(plan, target);
  Soaked soaked;
  soaked.every =
      std::clamp<nanoseconds>(nanoseconds{plan.length} / kSamples, kOftenest, kSeldomest);
  Attack attack(plan, target);
  attack.watch(soaked.every, [&](const Crowd& crowd) {
    if (soaked.began == LocalTime{}) soaked.began = BootClock::now();
    sampler.sample(crowd);
  });
  const Outcome outcome = attack.run();
  const Verdict verdict = judge(plan, outcome);
  const Title title{target.name, command, target.spared};
  soaked.ended = outcome.calm_since;
  soaked.series = sampler.series();
  soaked.is_counted = static_cast<bool>(target.count);
  soaked.acquisitions = acquisitions(outcome, soaked);
  SoakReport report;
  for (const Growth& growth : judge(soaked)) {
    if (!growth.is_flat()) report.grown.push_back(growth.series->name);
  }
  report.is_flat = is_flat(soaked);
  report.holds = verdict.holds();
  report.text = as_text(title, soaked) + as_text(title, plan, outcome, verdict);
  report.json = as_json(title, soaked, plan, as_json(title, plan, outcome, verdict));
  report.picture = as_picture(title, soaked, outcome.faults);
  return report;
}

}  // namespace simba::torture
