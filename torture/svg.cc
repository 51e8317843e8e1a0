#include "torture/svg.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace simba::torture {
namespace {

std::string titled(const std::string& about, const std::string& element) {
  return "><title>" + about + "</title></" + element + ">\n";
}

}  // namespace

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

Svg::Svg(double width, double height)
    : text_("<svg xmlns='http://www.w3.org/2000/svg' width='" + number(width) + "' height='" +
            number(height) +
            "' font-family='sans-serif' font-size='11'>\n<rect width='100%' height='100%' "
            "fill='#ffffff'/>\n") {}

void Svg::label(double left, double top, const std::string& words, const std::string& style) {
  text_ +=
      "<text x='" + number(left) + "' y='" + number(top) + "' " + style + '>' + words + "</text>\n";
}

void Svg::box(double left, double top, double width, double height, const std::string& fill,
              const std::string& about) {
  text_ += "<rect x='" + number(left) + "' y='" + number(top) + "' width='" +
           number(std::max(width, 1.5)) + "' height='" + number(height) + "' fill='" + fill + '\'' +
           titled(about, "rect");
}

void Svg::upright(double at, double top, double bottom, const std::string& stroke, double width,
                  const std::string& about) {
  path({{at, top}, {at, bottom}}, stroke, width, about);
}

void Svg::path(const Points& points, const std::string& stroke, double width,
               const std::string& about) {
  text_ += "<polyline points='";
  for (const auto& [x, y] : points) text_ += number(x) + ',' + number(y) + ' ';
  text_ += "' fill='none' stroke='" + stroke + "' stroke-width='" + number(width) + '\'' +
           titled(about, "polyline");
}

}  // namespace simba::torture
