// Writes pictures as SVG: well-formed XML whatever the texts are, and the colours of all our plots,
// for light and dark screens. The palette is Okabe and Ito's, which colour-blind readers can tell
// apart; what differs in colour differs in shape, too.
//
// Elements have classes from this list:
//   colours   p50, p99, best, plain (a bar that stands for itself), muted
//   shapes    stroke, fill, dashed, thin, grid, axis, leader (from a point to its label)
//   texts     title, small, bold, halo (readable on top of lines)
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hearth {

struct SvgPoint {
  double x = 0, y = 0;  // pixels from the left and from the top
};

enum class TextAnchor { kStart, kMiddle, kEnd };

class SvgWriter {
 public:
  // `title` is what screen readers say.
  SvgWriter(double width, double height, std::string_view title);

  void line(SvgPoint from, SvgPoint to, std::string_view classes);
  void polyline(std::span<const SvgPoint> points, std::string_view classes);
  void rect(SvgPoint corner, double width, double height, std::string_view classes);
  void circle(SvgPoint centre, double radius, std::string_view classes);
  // `place` is on the text's base line.
  void text(SvgPoint place, std::string_view text, std::string_view classes = {},
            TextAnchor anchor = TextAnchor::kStart);
  // Reads from bottom to top, with its middle at `place`.
  void upward_text(SvgPoint place, std::string_view text, std::string_view classes = {});

  // The whole file.
  std::string finish() &&;

 private:
  std::string svg_;
};

inline constexpr double kTextHeight = 14;  // of texts without a size class, in pixels

// About how wide a text is, in pixels.
double text_width(std::string_view text, double height = kTextHeight);
// The text, or as much of its beginning as fits, with "..." after it.
std::string fitting_text(std::string_view text, double width, double height = kTextHeight);
// The text as it may stand in XML. Control characters and broken UTF-8 are replaced.
std::string xml_text(std::string_view text);

}  // namespace hearth
