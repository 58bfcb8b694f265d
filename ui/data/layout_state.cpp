#include "ui/data/layout_state.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

using nlohmann::json;
using PartWeight = std::pair<std::string_view, float>;

constexpr float kLeastWeight = 0.02f;

constexpr std::array<std::string_view, 4> kClassroomPanels = {"timeline", "latency", "occupancy",
                                                              "control"};
constexpr std::array kClassroomWeights = {PartWeight{"centre", 0.765f}, PartWeight{"side", 0.235f},
                                          PartWeight{"top", 0.6f}, PartWeight{"bottom", 0.4f}};
constexpr std::array<std::string_view, 4> kMemoryPanels = {"timeline", "kv", "requests", "control"};
constexpr std::array kMemoryWeights = {PartWeight{"top", 0.4f}, PartWeight{"middle", 0.6f}};

const std::array kPresets = {
    LayoutPreset{.name = "All panels", .description = "Every panel, at its usual place and size."},
    LayoutPreset{.name = "Classroom",
                 .description = "For a projector: large type, the timeline, latency and occupancy, "
                                "and a narrow strip of controls.",
                 .shown = kClassroomPanels,
                 .zoom = 1.5f,
                 .weights = kClassroomWeights},
    LayoutPreset{.name = "Memory",
                 .description = "The timeline above a large map of the KV blocks.",
                 .shown = kMemoryPanels,
                 .weights = kMemoryWeights},
};

std::vector<std::string> strings(const json& list) {
  std::vector<std::string> result;
  if (list.is_array())
    for (const json& one : list)
      if (one.is_string()) result.push_back(one.get<std::string>());
  return result;
}

}  // namespace

json layout_json(const LayoutState& state) {
  json regions = json::object(), weights = json::object();
  for (const auto& [panel, region] : state.regions) regions[panel] = part_of(region).key;
  for (size_t i = 1; i < kLayoutParts.size(); ++i)
    weights[std::string(kLayoutParts[i].key)] = state.splits[i];
  return {{"hidden", state.hidden},
          {"front", state.front},
          {"regions", regions},
          {"weights", weights},
          {"zoom", state.zoom}};
}

LayoutState read_layout(const json& from) {
  LayoutState state;
  if (!from.is_object()) return state;
  const auto member = [&](const char* name) {
    const auto found = from.find(name);
    return found == from.end() ? json() : *found;
  };
  state.hidden = strings(member("hidden"));
  state.front = strings(member("front"));
  if (const json regions = member("regions"); regions.is_object())
    for (const auto& [panel, region] : regions.items())
      if (region.is_string())
        if (const auto known = region_with_key(region.get<std::string>()))
          state.regions[panel] = *known;
  if (const json weights = member("weights"); weights.is_object())
    for (size_t i = 1; i < kLayoutParts.size(); ++i)
      if (const auto found = weights.find(std::string(kLayoutParts[i].key));
          found != weights.end() && found->is_number())
        if (const auto weight = found->get<float>(); weight >= kLeastWeight && weight <= 1)
          state.splits[i] = weight;
  if (const json zoom = member("zoom"); zoom.is_number() && std::isfinite(zoom.get<float>()))
    state.zoom = std::clamp(zoom.get<float>(), kMinZoom, kMaxZoom);
  return state;
}

std::span<const LayoutPreset> layout_presets() { return kPresets; }

LayoutState apply_preset(const LayoutPreset& preset, const LayoutState& state,
                         std::span<const std::string_view> panels) {
  LayoutState result = state;
  result.hidden.clear();
  result.regions.clear();
  for (const std::string_view panel : panels)
    if (!preset.shown.empty() && std::ranges::find(preset.shown, panel) == preset.shown.end())
      result.hidden.emplace_back(panel);
  result.splits = default_splits();
  for (const auto& [key, weight] : preset.weights)
    for (size_t i = 0; i < kLayoutParts.size(); ++i)
      if (kLayoutParts[i].key == key) result.splits[i] = weight;
  result.zoom = preset.zoom > 0 ? preset.zoom : result.zoom;
  return result;
}

}  // namespace hearth
