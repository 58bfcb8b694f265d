// Arranges the window's regions. Pure geometry: the regions are a tree of splits, described as
// data. A region without visible panels leaves its space to its neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
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

// A part of the window: a region, or several parts next to or below each other.
struct LayoutPart {
  std::string_view key;       // in the settings
  std::string_view name;      // in menus
  int parent = -1;            // index of the part that holds it
  bool side_by_side = false;  // its own parts are next to each other
  float weight = 1;           // its default share, compared with the other parts of its parent
  std::optional<Region> region;
};
inline constexpr std::array kLayoutParts = {
    LayoutPart{.key = "window", .name = "Window", .side_by_side = true},
    LayoutPart{"left", "Left", 0, false, 0.27f, Region::kLeft},
    LayoutPart{.key = "centre", .name = "Centre", .parent = 0, .weight = 0.48f},
    LayoutPart{.key = "side", .name = "Side", .parent = 0, .weight = 0.25f},
    LayoutPart{"top", "Centre, top", 2, false, 0.44f, Region::kTop},
    LayoutPart{"middle", "Centre, middle", 2, false, 0.22f, Region::kMiddle},
    LayoutPart{
        .key = "bottom", .name = "Bottom", .parent = 2, .side_by_side = true, .weight = 0.34f},
    LayoutPart{"bottom_left", "Centre, bottom left", 6, false, 0.5f, Region::kBottomLeft},
    LayoutPart{"bottom_right", "Centre, bottom right", 6, false, 0.5f, Region::kBottomRight},
    LayoutPart{"side_top", "Right, top", 3, false, 0.6f, Region::kSideTop},
    LayoutPart{"side_bottom", "Right, bottom", 3, false, 0.4f, Region::kSideBottom},
};
// The part that is this region.
const LayoutPart& part_of(Region region);
std::optional<Region> region_with_key(std::string_view key);

struct Box {
  float x = 0, y = 0, width = 0, height = 0;
  bool empty() const { return width <= 0 || height <= 0; }
};

// The weight of each part.
using Splits = std::array<float, kLayoutParts.size()>;
Splits default_splits();

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

// The size of text and widgets, compared with the usual one, at which all panels fit a window of
// this size in units of the usual scale: 1, or less in a small window.
float fitting_scale(float width, float height);

// Moves a splitter. Neither side shrinks below a tenth of their combined size.
void drag(const Splitter& splitter, float pixels);

}  // namespace hearth
