// The palette as ImGui's colours, and the style of its widgets, light and dark.
#pragma once

#include <cstdint>
#include <string_view>

#include <imgui.h>

#include "engine/scheduling/batch_plan.h"
#include "ui/data/palette.h"

namespace hearth {

struct Theme {
  bool dark = true;
  float scale = 1;  // display scale times zoom

  ImU32 phase_color(PhaseColor phase) const;
  // A request has the same colour in every panel.
  ImU32 sequence_color(RequestId request) const;
  // Unrelated things in one plot.
  ImU32 series_color(int index) const;
  ImU32 memory_color(std::string_view kind) const;  // "weights", "KV cache", "activations"
  ImU32 percentile_color(int index) const;          // 0: p50, 1: p90, 2: p99
  ImU32 gpu_time_color() const;
  ImU32 planning_time_color() const;
  ImU32 text_color() const;
  ImU32 faint_color() const;  // grid lines, axes
  ImU32 warning_color() const;
  ImU32 on_accent_color() const;  // text on a chosen button
  float px(float size) const { return size * scale; }
};

// Sets ImGui's colours and sizes.
void apply_theme(const Theme& theme);

}  // namespace hearth
