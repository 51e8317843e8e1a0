#include <algorithm>
#include <array>
#include <map>

#include "torture/outcome.h"
#include "torture/svg.h"

// Time runs to the right. A lane per client: on top what was done to it, below a row per mutex with
// its terms as bars. A thin line leads from a term to the next one of the same mutex.
namespace simba::torture {
namespace {

constexpr std::array<const char*, 6> kColours{"#2f6db3", "#b3622f", "#3b8f4f",
                                              "#7d4fa3", "#9c8a1e", "#1e8c8c"};
constexpr double kLeft = 90, kTop = 64, kRow = 18, kFaults = 24, kBetween = 10;

// What is done to the server.
const char* word_of(FaultKind kind) {
  if (kind == FaultKind::kClockStep) return "clock";
  return kind == FaultKind::kFailover ? "failover" : "server";
}

class Picture {
 public:
  Picture(const Title& title, const Plan& plan, const Outcome& outcome, const Verdict& verdict)
      : title_(title),
        plan_(plan),
        outcome_(outcome),
        verdict_(verdict),
        per_second_(
            std::clamp(80.0, 900 / seconds(outcome.ended), 16'000 / seconds(outcome.ended))),
        width_(kLeft + seconds(outcome.ended) * per_second_ + 30),
        height_(lane(plan.clients) + 30),
        svg_(width_, height_) {}

  std::string draw() {
    header();
    axis();
    for (int client = 0; client < plan_.clients; ++client) frame(client);
    for (const Fault& fault : outcome_.faults) mark(fault);
    for (std::size_t mutex = 0; mutex < outcome_.histories.size(); ++mutex) terms(mutex);
    for (const Violation& violation : verdict_.violations) {
      svg_.upright(x(violation.at), kTop - 8, height_ - 24, "#d00000", 2, violation.what);
    }
    return svg_.text();
  }

 private:
  double seconds(LocalTime at) const {
    return std::chrono::duration<double>(at - outcome_.began).count();
  }
  double x(LocalTime at) const { return kLeft + seconds(at) * per_second_; }
  double lane(int client) const {
    return kTop + client * (kFaults + plan_.mutexes * kRow + kBetween);
  }
  double row(int client, std::size_t mutex) const {
    return lane(client) + kFaults + static_cast<double>(mutex) * kRow;
  }
  static const char* colour(std::size_t mutex) { return kColours.at(mutex % kColours.size()); }

  void header() {
    svg_.label(10, 18,
               title_.store + ": " + (verdict_.holds() ? "holds" : "BROKEN") + ", seed " +
                   std::to_string(plan_.seed) + ", " + std::to_string(verdict_.terms) + " terms",
               "font-size='14' font-weight='bold'");
    svg_.label(10, 36,
               "bars: terms, numbered by their tokens; thin lines: takeovers; black: killed; grey: "
               "stopped; orange: network; purple: server; red: a broken promise");
  }

  void axis() {
    const double length = seconds(outcome_.ended);
    const int step = length > 120 ? 10 : length > 30 ? 5 : 1;
    for (int second = 0; second <= static_cast<int>(length); second += step) {
      const double at = kLeft + second * per_second_;
      svg_.upright(at, kTop - 4, height_ - 26, "#e6e6e6", 1, std::to_string(second) + " s");
      svg_.label(at - 6, height_ - 12, std::to_string(second) + " s", "fill='#666666'");
    }
    svg_.upright(x(outcome_.calm_since), kTop - 16, height_ - 26, "#3b8f4f", 1.5, "the faults end");
    svg_.label(x(outcome_.calm_since) + 3, kTop - 8, "calm", "fill='#3b8f4f'");
  }

  void frame(int client) {
    svg_.label(10, lane(client) + kFaults - 6, "client " + std::to_string(client),
               "font-weight='bold'");
    for (std::size_t mutex = 0; mutex < outcome_.histories.size(); ++mutex) {
      const double top = row(client, mutex);
      svg_.label(16, top + kRow - 5, "mutex " + std::to_string(mutex),
                 std::string("fill='") + colour(mutex) + "'");
      svg_.box(kLeft, top + kRow - 2, width_ - kLeft - 30, 1, "#f0f0f0", "");
    }
  }

  void mark(const Fault& fault) {
    const std::string about(to_string(fault.kind));
    const double left = x(fault.begin), width = x(fault.end) - left;
    switch (fault.kind) {
      case FaultKind::kServerKill:
      case FaultKind::kFailover:
      case FaultKind::kClockStep:
        svg_.box(left, kTop - 4, width, height_ - kTop - 22, "#7d4fa330", about);
        svg_.label(left + 2, kTop - 6, word_of(fault.kind), "fill='#7d4fa3' font-size='9'");
        return;
      case FaultKind::kKill:
        svg_.box(left, lane(fault.client) + 13, width, kFaults + plan_.mutexes * kRow - 15,
                 "#00000026", about);
        svg_.label(left, lane(fault.client) + 22, "&#10005; kill", "font-size='10'");
        return;
      case FaultKind::kStop:
      case FaultKind::kStopInWindow:
        svg_.box(left, lane(fault.client) + 13, width, kFaults + plan_.mutexes * kRow - 15,
                 "#80808040", about);
        svg_.label(left + 2, lane(fault.client) + 22,
                   fault.kind == FaultKind::kStop ? "stop" : "stop before a write",
                   "font-size='10' fill='#555555'");
        return;
      default:
        svg_.box(left, lane(fault.client), width, 3, "#e08a00", about);
        svg_.label(left + 2, lane(fault.client) + 11, about, "font-size='9' fill='#a86500'");
    }
  }

  // Tokens are long numbers: the bars carry their rank, the whole is in the title.
  void terms(std::size_t mutex) {
    std::vector<Span> all = spans(outcome_.histories.at(mutex));
    std::map<Token, std::size_t> ranks;
    for (const Span& span : all) ranks.try_emplace(span.token, ranks.size() + 1);
    const Span* previous = nullptr;
    for (const Span& span : all) {
      const double left = x(span.begin), width = x(span.end) - left;
      const double top = row(span.client, mutex);
      const std::string rank = std::to_string(ranks.at(span.token));
      svg_.box(left, top + 2, width, kRow - 5, colour(mutex),
               "client " + std::to_string(span.client) + ", token " + std::to_string(span.token) +
                   ", " + number((x(span.end) - left) / per_second_ * 1000) + " ms");
      if (width > 7.0 * static_cast<double>(rank.size()) + 2) {
        svg_.label(left + 2, top + kRow - 6, rank, "fill='#ffffff' font-size='10'");
      }
      if (previous != nullptr && previous->client != span.client) {
        svg_.path(
            {{x(previous->end), row(previous->client, mutex) + kRow / 2}, {left, top + kRow / 2}},
            colour(mutex) + std::string("b3"), 0.7, "");
      }
      previous = &span;
    }
  }

  const Title& title_;
  const Plan& plan_;
  const Outcome& outcome_;
  const Verdict& verdict_;
  const double per_second_, width_, height_;
  Svg svg_;
};

}  // namespace

std::string as_picture(const Title& title, const Plan& plan, const Outcome& outcome,
                       const Verdict& verdict) {
  return Picture(title, plan, outcome, verdict).draw();
}

}  // namespace simba::torture
