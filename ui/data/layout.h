// Arranges the window's regions. Pure geometry. A region without visible panels leaves its space to
// its neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

// Where a panel is placed. Panels of the same region share it as tabs.
enum class Region : uint8_t {
  kLeft,         // a tall column: chat
  kTop,          // the widest one: timeline
  kMiddle,       // below it: KV blocks
  kBottomLeft,   // latency
  kBottomRight,  // occupancy
  kSideTop,      // a narrow column: control
  kSideBottom,   // requests, roofline, models
};
inline constexpr size_t kRegions = 7;

struct Box {
  float x = 0, y = 0, width = 0, height = 0;
  bool empty() const { return width <= 0 || height <= 0; }
};

// Weights by which the space is divided. Unused regions are ignored.
struct Splits {
  std::array<float, 3> columns = {0.27f, 0.50f, 0.23f};  // left, centre, side
  std::array<float, 3> rows = {0.37f, 0.26f, 0.37f};  // of the centre column: top, middle, bottom
  std::array<float, 2> bottom = {0.5f, 0.5f};         // left, right
  std::array<float, 2> side = {0.58f, 0.42f};         // top, bottom
};

// The draggable gap between two neighbours.
struct Splitter {
  Box box;
  bool vertical = false;    // a vertical bar, dragged left and right
  float* before = nullptr;  // weights in the Splits passed to arrange()
  float* after = nullptr;
  float extent = 0;  // combined size of both neighbours, in pixels
};

struct Arrangement {
  std::array<Box, kRegions> regions;  // empty if unused
  std::vector<Splitter> splitters;
};

// `gap` is the space between neighbours, in pixels. The result points into `splits`.
Arrangement arrange(const Box& whole, float gap, Splits& splits,
                    const std::array<bool, kRegions>& used);

// Moves a splitter. Neither side shrinks below a tenth of their combined size.
void drag(const Splitter& splitter, float pixels);

}  // namespace hearth
