#pragma once

#include <string>
#include <utility>
#include <vector>

namespace simba::torture {

// Writes an SVG file, on white. `about` is what shows under the pointer; words are not escaped.
//
// Threads: one.
class Svg {
 public:
  Svg(double width, double height);

  void label(double left, double top, const std::string& words, const std::string& style = {});
  void box(double left, double top, double width, double height, const std::string& fill,
           const std::string& about);
  void upright(double at, double top, double bottom, const std::string& stroke, double width,
               const std::string& about);
  using Points = std::vector<std::pair<double, double>>;
  void path(const Points& points, const std::string& stroke, double width,
            const std::string& about);

  std::string text() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

std::string number(double value);  // with one digit after the point

}  // namespace simba::torture
