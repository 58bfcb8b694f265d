// What stands above a plot: its heading, and a row of symbols with their meanings. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tools/replay/svg_writer.h"

namespace hearth {

inline constexpr double kLegendY = 112;  // the base line of a legend below a heading, in pixels

// A title and two lines below it, cut to the picture's width.
inline void draw_plot_heading(SvgWriter& svg, std::string_view title,
                              std::span<const std::string> lines, double width) {
  constexpr double kMargin = 30, kTitleHeight = 19, kFirst = 62, kLine = 20;
  svg.text({kMargin, 38}, fitting_text(title, width - 2 * kMargin, kTitleHeight), "title");
  double y = kFirst;
  for (const std::string& line : lines) {
    svg.text({kMargin, y}, fitting_text(line, width - 2 * kMargin), "muted");
    y += kLine;
  }
}

class PlotLegend {
 public:
  // Begins at `place`, on the base line of its texts, and continues below it where an entry would
  // reach beyond `right`. REQUIRES: `svg` outlives it.
  PlotLegend(SvgWriter& svg, SvgPoint place, double right)
      : svg_(svg), place_(place), left_(place.x), right_(right) {}

  // `draw` draws the symbol with its middle at the given point; an empty one leaves it out.
  void add(std::string_view text, const std::function<void(SvgPoint)>& draw) {
    constexpr double kSymbol = 34, kGap = 26, kLine = 22;
    const double symbol = draw ? kSymbol : 0;
    const double width = symbol + text_width(text);
    if (place_.x > left_ && place_.x + width > right_) place_ = {left_, place_.y + kLine};
    if (draw) draw({place_.x + kSymbol / 2 - 4, place_.y - kTextHeight / 3});
    svg_.text({place_.x + symbol, place_.y}, text);
    place_.x += width + kGap;
  }

 private:
  SvgWriter& svg_;
  SvgPoint place_;
  double left_, right_;
};

}  // namespace hearth
