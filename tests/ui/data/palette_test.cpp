#include "ui/data/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using PaletteVector = std::array<double, 3>;
using PaletteMatrix = std::array<PaletteVector, 3>;

PaletteVector times(const PaletteMatrix& m, const PaletteVector& v) {
  PaletteVector result = {};
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) result[i] += m[i][j] * v[j];
  return result;
}

// What people see: with all cones, and without those for red, green or blue (Machado et al. 2009).
constexpr std::array<PaletteMatrix, 4> kEyes = {{
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{.152286, 1.052583, -.204868}, {.114503, .786281, .099216}, {-.003882, -.048116, 1.051998}}},
    {{{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881}}},
    {{{1.255528, -.076749, -.178779}, {-.078411, .930809, .147602}, {.004733, .691367, .303900}}},
}};
constexpr PaletteMatrix kToXyz = {{{.4124564, .3575761, .1804375},
                                   {.2126729, .7151522, .0721750},
                                   {.0193339, .1191920, .9503041}}};

PaletteVector linear_rgb(uint32_t color) {
  PaletteVector result;
  for (size_t i = 0; i < 3; ++i) {
    const double value = (color >> (16 - 8 * i) & 0xff) / 255.0;
    result[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return result;
}

PaletteVector cie_lab(PaletteVector rgb) {
  for (double& value : rgb) value = std::clamp(value, 0.0, 1.0);
  const PaletteVector xyz = times(kToXyz, rgb), white = {.95047, 1, 1.08883};
  PaletteVector f;
  for (size_t i = 0; i < 3; ++i) {
    const double share = xyz[i] / white[i];
    f[i] = share > 0.008856 ? std::cbrt(share) : 7.787 * share + 16.0 / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double distance(uint32_t a, uint32_t b, const PaletteMatrix& eye) {
  const PaletteVector left = cie_lab(times(eye, linear_rgb(a)));
  const PaletteVector right = cie_lab(times(eye, linear_rgb(b)));
  return std::hypot(left[0] - right[0], left[1] - right[1], left[2] - right[2]);
}

double contrast(uint32_t a, uint32_t b) {
  const auto luminance = [](uint32_t color) { return times(kToXyz, linear_rgb(color))[1]; };
  const double low = std::min(luminance(a), luminance(b)),
               high = std::max(luminance(a), luminance(b));
  return (high + 0.05) / (low + 0.05);
}

const Chrome& chrome_of(bool dark) { return dark ? kDarkChrome : kLightChrome; }

void expect_distinct(std::span<const Shades> group, double least, const char* name) {
  for (const bool dark : {true, false})
    for (size_t i = 0; i < group.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        for (size_t eye = 0; eye < kEyes.size(); ++eye)
          EXPECT_GE(distance(group[i].of(dark), group[j].of(dark), kEyes[eye]), least)
              << name << ' ' << j << " and " << i << (dark ? ", dark" : ", light") << ", eye "
              << eye;
}

// A distance of 2.3 is just noticeable side by side.
TEST(Palette, ColourBlindPeopleCanTellTheColoursOfAGroupApart) {
  const auto phases = std::span(kPhaseShades).first(7);
  expect_distinct(phases, 13, "phases");
  std::vector<Shades> blocks = {kPhaseShades[static_cast<size_t>(PhaseColor::kFree)],
                                kPhaseShades[static_cast<size_t>(PhaseColor::kCached)]};
  blocks.insert(blocks.end(), kMemoryShades.begin(), kMemoryShades.end());
  expect_distinct(blocks, 13, "memory");
  expect_distinct(kPercentileShades, 13, "percentiles");
  expect_distinct(std::array{kGpuTime, kPlanningTime}, 13, "times");
  expect_distinct(kSequenceShades, 13, "sequences");
}

TEST(Palette, SequencesHaveColoursThatNothingElseHas) {
  std::vector<Shades> others(kPhaseShades.begin(), kPhaseShades.end());
  others.insert(others.end(), kMemoryShades.begin(), kMemoryShades.end());
  others.insert(others.end(), kPercentileShades.begin(), kPercentileShades.end());
  for (const bool dark : {true, false})
    for (size_t i = 0; i < kSequenceShades.size(); ++i)
      for (size_t j = 0; j < others.size(); ++j)
        EXPECT_GE(distance(kSequenceShades[i].of(dark), others[j].of(dark), kEyes[0]), 12)
            << "sequence " << i << " and colour " << j << (dark ? ", dark" : ", light");
}

TEST(Palette, TextAndDataStandOutFromTheirBackground) {
  for (const bool dark : {true, false}) {
    const Chrome& chrome = chrome_of(dark);
    EXPECT_GE(contrast(chrome.text, chrome.panel), 12);
    EXPECT_GE(contrast(chrome.text, chrome.raised), 9);
    EXPECT_GE(contrast(chrome.faint, chrome.panel), 4.5);
    EXPECT_GE(contrast(chrome.accent_strong, chrome.panel), 4.5);
    EXPECT_GE(contrast(chrome.on_accent, chrome.accent_strong), 4.5);
    EXPECT_GE(contrast(chrome.warning, chrome.panel), 4.5);
    for (const Shades& shades : kSequenceShades)
      EXPECT_GE(contrast(shades.of(dark), chrome.panel), 2);
    for (const Shades& shades : kPercentileShades)
      EXPECT_GE(contrast(shades.of(dark), chrome.panel), 2.5);
    for (const PhaseColor phase :
         {PhaseColor::kPrefill, PhaseColor::kDecode, PhaseColor::kPreempted, PhaseColor::kSwapped})
      EXPECT_GE(contrast(kPhaseShades[static_cast<size_t>(phase)].of(dark), chrome.panel), 3)
          << phase_name(phase);
  }
}

TEST(Palette, TheServersPageHasTheSameColours) {
  std::ifstream file(HEARTH_SOURCE_DIR "/tools/server/page.html");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t dark_from = page.find("prefers-color-scheme: dark");
  ASSERT_NE(dark_from, std::string::npos);
  for (const bool dark : {false, true}) {
    const Chrome& chrome = chrome_of(dark);
    const std::string part = dark ? page.substr(dark_from) : page.substr(0, dark_from);
    for (const auto& [name, color] :
         {std::pair{"back", chrome.panel}, std::pair{"side", chrome.window},
          std::pair{"box", chrome.raised}, std::pair{"text", chrome.text},
          std::pair{"quiet", chrome.faint}, std::pair{"line", chrome.border},
          std::pair{"accent", chrome.accent_strong}, std::pair{"on-accent", chrome.on_accent},
          std::pair{"code", chrome.window}, std::pair{"bad", chrome.warning}})
      EXPECT_NE(part.find(fmt::format("--{}: #{:06x};", name, color)), std::string::npos)
          << name << (dark ? ", dark" : ", light");
  }
}

}  // namespace
}  // namespace hearth
