// Where regions are: pure geometry. Regions without a visible panel give their place to neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

// Where a panel is at first. Panels of one region are its tabs.
enum class Region : uint8_t {
  kLeft,         // a tall column: chat
  kTop,          // the widest: timeline
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

// Shares of the room, by weight; those of regions that are not used count for nothing.
struct Splits {
  std::array<float, 3> columns = {0.27f, 0.50f, 0.23f};  // left, centre, side
  std::array<float, 3> rows = {0.37f, 0.26f, 0.37f};     // of the centre: top, middle, bottom
  std::array<float, 2> bottom = {0.5f, 0.5f};            // left, right
  std::array<float, 2> side = {0.58f, 0.42f};            // top, bottom
};

// What lies between two neighbours, to be dragged.
struct Splitter {
  Box box;
  bool vertical = false;    // moves to the left and right
  float* before = nullptr;  // weights in the Splits it was made from
  float* after = nullptr;
  float extent = 0;  // pixels that both together have
};

struct Arrangement {
  std::array<Box, kRegions> regions;  // empty for those not used
  std::vector<Splitter> splitters;
};

// `gap`: pixels between neighbours.
Arrangement arrange(const Box& whole, float gap, Splits& splits,
                    const std::array<bool, kRegions>& used);

// Moves a splitter by some pixels; no side becomes smaller than a tenth of both.
void drag(const Splitter& splitter, float pixels);

}  // namespace hearth
