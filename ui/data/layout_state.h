// What a person can change about the layout, as plain data: which panels are shown and where, the
// sizes of the regions, and the size of text. Saved in the settings, also under names.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ui/data/layout.h"

namespace hearth {

struct LayoutState {
  std::vector<std::string> hidden;        // keys of panels
  std::vector<std::string> front;         // keys of panels whose tabs are in front
  std::map<std::string, Region> regions;  // of panels that are not where they are by default
  Splits splits = default_splits();
  float zoom = 1;

  bool operator==(const LayoutState&) const = default;
};

inline constexpr float kMinZoom = 0.75f, kMaxZoom = 2;

nlohmann::json layout_json(const LayoutState& state);
// Whatever is missing or wrong has its default.
LayoutState read_layout(const nlohmann::json& json);

// A layout that the program comes with.
struct LayoutPreset {
  std::string_view name, description;
  std::span<const std::string_view> shown;  // keys of panels; empty: all
  float zoom = 0;                           // 0: as it is
  // Other weights than the default ones.
  std::span<const std::pair<std::string_view, float>> weights;
};
std::span<const LayoutPreset> layout_presets();
// The state that a preset makes of the present one. `panels` are the keys of all panels.
LayoutState apply_preset(const LayoutPreset& preset, const LayoutState& state,
                         std::span<const std::string_view> panels);

}  // namespace hearth
