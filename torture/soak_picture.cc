#include <algorithm>
#include <array>

#include "torture/soak.h"
#include "torture/svg.h"

// Time runs to the right, in all of the small pictures alike. On top the faults as ticks; below a
// picture per thing that was measured, from zero up, with a line per client. Grey is the quarter
// with which the last one is compared, and the last one.
namespace simba::torture {
namespace {

constexpr std::array<const char*, 6> kColours{"#2f6db3", "#b3622f", "#3b8f4f",
                                              "#7d4fa3", "#9c8a1e", "#1e8c8c"};
constexpr double kLeft = 150, kWidth = 900, kTop = 50, kTicks = 40, kHeight = 90, kBetween = 26;

const char* colour(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return "#000000";
    case FaultKind::kStop:
    case FaultKind::kStopInWindow:
      return "#808080";
    case FaultKind::kServerKill:
    case FaultKind::kFailover:
    case FaultKind::kClockStep:
      return "#7d4fa3";
    default:
      return "#e08a00";
  }
}

class Picture {
 public:
  Picture(const Title& title, const Soaked& soaked, const std::vector<Fault>& faults)
      : title_(title),
        soaked_(soaked),
        faults_(faults),
        growths_(judge(soaked)),
        panels_(group()) {}

  std::string draw() {
    const bool is_flat = std::all_of(growths_.begin(), growths_.end(),
                                     [](const Growth& growth) { return growth.is_flat(); });
    svg_.label(10, 18, title_.store + ": " + (is_flat ? "flat" : "GROWS"),
               "font-size='14' font-weight='bold'");
    svg_.label(10, 36,
               "black: a client killed; grey: stopped; orange: its network; purple: server and its "
               "clock; red: it grew beyond this");
    ticks();
    for (std::size_t index = 0; index < panels_.size(); ++index) panel(index);
    return svg_.text();
  }

 private:
  using Panel = std::vector<const Series*>;

  std::vector<Panel> group() const {
    std::vector<Panel> panels;
    for (const Series& series : soaked_.series) {
      if (panels.empty() || panels.back().front()->name != series.name) panels.emplace_back();
      panels.back().push_back(&series);
    }
    panels.push_back({&soaked_.acquisitions});
    return panels;
  }

  double length() const {
    return std::chrono::duration<double>(soaked_.ended - soaked_.began).count();
  }
  double x(LocalTime at) const {
    return kLeft + std::chrono::duration<double>(at - soaked_.began).count() / length() * kWidth;
  }
  static double top(std::size_t index) {
    return kTop + kTicks + static_cast<double>(index) * (kHeight + kBetween);
  }

  void ticks() {
    svg_.label(10, kTop + 18, "faults", "font-weight='bold'");
    for (const Fault& fault : faults_) {
      if (fault.begin >= soaked_.ended) continue;
      svg_.upright(x(fault.begin), kTop + 6, kTop + 22, colour(fault.kind), 1,
                   std::string(to_string(fault.kind)));
    }
  }

  void panel(std::size_t index) {
    const Panel& panel = panels_.at(index);
    const Series& first = *panel.front();
    double most = 1;
    for (const Series* series : panel) {
      for (const Point& point : series->points) most = std::max(most, point.value);
    }
    most *= 1.1;
    const double bottom = top(index) + kHeight;
    const double quarter = kWidth / 4;
    if (&first != &soaked_.acquisitions) {
      for (const double from : {quarter, 3 * quarter}) {
        svg_.box(kLeft + from, top(index), quarter, kHeight, "#f4f4f4", "compared");
      }
    }
    svg_.path({{kLeft, top(index)}, {kLeft, bottom}, {kLeft + kWidth, bottom}}, "#999999", 1, "");
    svg_.label(10, top(index) + 14, first.name, "font-weight='bold'");
    svg_.label(10, top(index) + 28, first.unit, "fill='#666666'");
    svg_.label(kLeft - 46, top(index) + 10, number(most), "fill='#666666' font-size='9'");
    svg_.label(kLeft - 12, bottom, "0", "fill='#666666' font-size='9'");
    svg_.label(kLeft + kWidth - 40, bottom + 14, number(length()) + " s", "fill='#666666'");
    for (const Series* series : panel) plot(*series, bottom, kHeight / most);
  }

  void plot(const Series& series, double bottom, double scale) {
    Svg::Points points;
    for (const Point& point : series.points) {
      points.emplace_back(x(point.at), bottom - point.value * scale);
    }
    const auto turn = static_cast<std::size_t>(std::max(0, series.client)) % kColours.size();
    svg_.path(points, kColours.at(turn), 1.2,
              series.name + (series.client < 0 ? "" : ", client " + std::to_string(series.client)));
    const auto growth = std::find_if(growths_.begin(), growths_.end(),
                                     [&](const Growth& each) { return each.series == &series; });
    if (growth == growths_.end() || growth->is_flat() || !growth->drift) return;
    const double allowed = bottom - growth->drift->allowed * scale;
    svg_.path({{kLeft + kWidth * 3 / 4, allowed}, {kLeft + kWidth, allowed}}, "#d00000", 2,
              "client " + std::to_string(series.client) + " grows: allowed was " +
                  number(growth->drift->allowed));
  }

  const Title& title_;
  const Soaked& soaked_;
  const std::vector<Fault>& faults_;
  const std::vector<Growth> growths_;
  const std::vector<Panel> panels_;
  Svg svg_{kLeft + kWidth + 30, top(panels_.size()) + 10};
};

}  // namespace

std::string as_picture(const Title& title, const Soaked& soaked, const std::vector<Fault>& faults) {
  return Picture(title, soaked, faults).draw();
}

}  // namespace simba::torture
