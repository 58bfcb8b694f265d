#include "tools/replay/svg_writer.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "engine/text/utf8.h"

namespace hearth {
namespace {

constexpr std::string_view kStyle = R"(
text { font: 14px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1f2328; }
text.title { font-size: 19px; font-weight: 600; }
text.small { font-size: 13px; }
text.bold { font-weight: 600; }
text.halo { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
text.muted { fill: #57606a; }
text.best { fill: #00704f; }
.background { fill: #ffffff; }
.grid { stroke: #dde2e8; stroke-width: 1; }
.axis { stroke: #57606a; stroke-width: 1; }
.p50 { color: #0072b2; }
.p99 { color: #d55e00; }
.best { color: #009e73; }
.plain { color: #7a828c; }
.muted { color: #57606a; }
.stroke { stroke: currentColor; stroke-width: 2.5; fill: none; stroke-linejoin: round; }
.fill { fill: currentColor; }
.thin { stroke-width: 1.5; }
.leader { stroke: currentColor; stroke-width: 1; }
.dashed { stroke-dasharray: 7 5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  text.halo { stroke: #14171c; }
  text.muted { fill: #aab3bd; }
  text.best { fill: #3ddba8; }
  .background { fill: #14171c; }
  .grid { stroke: #2b3138; }
  .axis { stroke: #aab3bd; }
  .p50 { color: #56b4e9; }
  .p99 { color: #f08a3c; }
  .best { color: #2bc798; }
  .plain { color: #929ba6; }
  .muted { color: #aab3bd; }
}
)";

// Pixels, to a tenth; "-0" and noise beyond that would only make files differ.
std::string pixels(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{:g}", rounded == 0 ? 0 : rounded);
}

std::string_view anchor_name(TextAnchor anchor) {
  switch (anchor) {
    case TextAnchor::kStart:
      return "start";
    case TextAnchor::kMiddle:
      return "middle";
    case TextAnchor::kEnd:
      return "end";
  }
  return "start";
}

// U+FFFE and U+FFFF are valid UTF-8, but not XML.
bool is_noncharacter(std::string_view character) {
  return character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const std::string_view character = text.substr(0, step.bytes);
    text.remove_prefix(step.bytes);
    if (step.kind != Utf8Step::Kind::kCharacter || is_noncharacter(character)) {
      result += kReplacementCharacter;
      continue;
    }
    switch (const char c = character[0]; c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        if (character.size() == 1 && (static_cast<unsigned char>(c) < ' ' || c == '\x7f'))
          result += ' ';
        else
          result += character;
    }
  }
  return result;
}

double text_width(std::string_view text, double height) {
  constexpr double kWidthOfHeight = 0.56;  // of the average letter in common sans-serif fonts
  size_t characters = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++characters;
  return static_cast<double>(characters) * height * kWidthOfHeight;
}

std::string fitting_text(std::string_view text, double width, double height) {
  constexpr std::string_view kDots = "...";
  if (text_width(text, height) <= width) return std::string(text);
  std::string result(text);
  while (!result.empty() && text_width(result, height) + text_width(kDots, height) > width)
    result.pop_back();
  result.resize(utf8_valid_prefix(result));
  return result.append(kDots);
}

SvgWriter::SvgWriter(double width, double height, std::string_view title)
    : svg_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
          "{0} {1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n",
          pixels(width), pixels(height), xml_text(title), kStyle)) {
  rect({0, 0}, width, height, "background");
}

void SvgWriter::line(SvgPoint from, SvgPoint to, std::string_view classes) {
  svg_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                      pixels(from.x), pixels(from.y), pixels(to.x), pixels(to.y), classes);
}

void SvgWriter::polyline(std::span<const SvgPoint> points, std::string_view classes) {
  std::string list;
  for (const SvgPoint& point : points)
    list += fmt::format("{}{},{}", list.empty() ? "" : " ", pixels(point.x), pixels(point.y));
  svg_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", list, classes);
}

void SvgWriter::rect(SvgPoint corner, double width, double height, std::string_view classes) {
  svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n",
                      pixels(corner.x), pixels(corner.y), pixels(width), pixels(height), classes);
}

void SvgWriter::circle(SvgPoint centre, double radius, std::string_view classes) {
  svg_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"/>\n", pixels(centre.x),
                      pixels(centre.y), pixels(radius), classes);
}

void SvgWriter::text(SvgPoint place, std::string_view text, std::string_view classes,
                     TextAnchor anchor) {
  svg_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                  pixels(place.x), pixels(place.y), classes, anchor_name(anchor), xml_text(text));
}

void SvgWriter::upward_text(SvgPoint place, std::string_view text, std::string_view classes) {
  svg_ += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" class=\"{2}\" text-anchor=\"middle\" transform=\"rotate(-90 {0} "
      "{1})\">{3}</text>\n",
      pixels(place.x), pixels(place.y), classes, xml_text(text));
}

std::string SvgWriter::finish() && {
  svg_ += "</svg>\n";
  return std::move(svg_);
}

}  // namespace hearth
