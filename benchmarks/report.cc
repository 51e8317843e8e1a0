#include "benchmarks/report.h"

#include <cmath>
#include <cstdio>

namespace simba::bench {
namespace {

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFigure:
      return "-";
    case Verdict::kMet:
      return "met";
    case Verdict::kMissed:
      return "MISSED";
    case Verdict::kVoid:
      return "void";
    case Verdict::kSkipped:
      return "skipped";
  }
  return "?";
}

// Three digits that count.
std::string shown(std::optional<double> value) {
  if (!value || std::isnan(*value)) return "";
  return fixed(*value, *value < 10 ? 2 : *value < 100 ? 1 : 0);
}

std::string share(std::optional<double> value) {
  return value && !std::isnan(*value) ? fixed(*value, 3) : "";
}

void print_number(const char* name, std::optional<double> value) {
  if (value && std::isfinite(*value)) std::printf(", \"%s\": %.6g", name, *value);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

Row row_of(std::string name, const Duel& pinned, const Duel* unpinned, std::optional<double> target,
           double scale) {
  const Samples raw = pinned.both_raw();
  Row row;
  row.name = std::move(name);
  row.ours = pinned.ours.median() / scale;
  row.ours_p99 = pinned.ours.quantile(0.99) / scale;
  row.raw = raw.median() / scale;
  row.raw_p99 = raw.quantile(0.99) / scale;
  row.ratio = pinned.ratio();
  row.ratio_of_totals = pinned.ratio_of_totals();
  row.a_to_a = pinned.a_to_a();
  if (unpinned != nullptr) row.unpinned_ratio = unpinned->ratio();
  if (target) {
    row.target = ">= " + fixed(*target, 2);
    row.verdict = *row.ratio >= *target ? Verdict::kMet : Verdict::kMissed;
  }
  if (!pinned.is_sound()) row.verdict = Verdict::kVoid;
  return row;
}

void excuse(Row& row, const Duel& wall, double target) {
  row.note = "the raw statements of the store reach " + fixed(wall.ratio(), 3) + " (A/A " +
             fixed(wall.a_to_a(), 3) + ")";
  if (row.verdict == Verdict::kMissed && wall.is_sound() && wall.ratio() < target) {
    row.verdict = Verdict::kVoid;
  }
}

void Report::add(const Row& row) {
  missed_ = missed_ || row.verdict == Verdict::kMissed;
  if (format_ == Format::kJson) {
    print_json(row);
  } else {
    if (!has_header_) print_header();
    has_header_ = true;
    print_line(row);
  }
  std::fflush(stdout);
}

void Report::print_header() {
  std::printf("%-34s %-5s %8s %8s %8s %8s  %6s %6s %8s %6s  %-13s %s\n", "", "", "ours", "", "raw",
              "", "ratio", "by", "not", "", "", "");
  std::printf("%-34s %-5s %8s %8s %8s %8s  %6s %6s %8s %6s  %-13s %s\n", "", "unit", "p50", "p99",
              "p50", "p99", "p50", "totals", "pinned", "A/A", "target", "verdict");
}

void Report::print_line(const Row& row) {
  std::printf("%-34s %-5s %8s %8s %8s %8s  %6s %6s %8s %6s  %-13s %s\n", row.name.c_str(),
              row.unit.c_str(), shown(row.ours).c_str(), shown(row.ours_p99).c_str(),
              shown(row.raw).c_str(), shown(row.raw_p99).c_str(), share(row.ratio).c_str(),
              share(row.ratio_of_totals).c_str(), share(row.unpinned_ratio).c_str(),
              share(row.a_to_a).c_str(), row.target.c_str(), word_of(row.verdict));
  if (!row.note.empty()) std::printf("    %s\n", row.note.c_str());
}

void Report::print_json(const Row& row) {
  std::printf("{\"name\": %s, \"unit\": %s", quoted(row.name).c_str(), quoted(row.unit).c_str());
  print_number("ours", row.ours);
  print_number("ours_p99", row.ours_p99);
  print_number("raw", row.raw);
  print_number("raw_p99", row.raw_p99);
  print_number("ratio", row.ratio);
  print_number("ratio_of_totals", row.ratio_of_totals);
  print_number("unpinned_ratio", row.unpinned_ratio);
  print_number("a_to_a", row.a_to_a);
  if (!row.target.empty()) std::printf(", \"target\": %s", quoted(row.target).c_str());
  if (!row.note.empty()) std::printf(", \"note\": %s", quoted(row.note).c_str());
  std::printf(", \"verdict\": %s}\n", quoted(word_of(row.verdict)).c_str());
}

}  // namespace simba::bench
