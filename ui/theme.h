// Colours, sizes and fonts, light and dark. The palette is based on Okabe and Ito's, which
// colour-blind people can tell apart.
#pragma once

#include <cstdint>

#include <imgui.h>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

// What a sequence does in a step, or what a block is used for.
enum class PhaseColor : uint8_t {
  kPrefill,
  kDecode,
  kWaiting,
  kPreempted,
  kSwapped,
  kPadding,
  kSharedPrefix,
  kFree,
  kCached,
  kCount,
};
const char* phase_name(PhaseColor phase);  // "prefill"

struct Theme {
  bool dark = true;
  float scale = 1;  // display scale times zoom

  ImU32 phase_color(PhaseColor phase) const;
  // A request has the same colour in every panel.
  ImU32 sequence_color(RequestId request) const;
  ImU32 series_color(int index) const;
  ImU32 text_color() const;
  ImU32 faint_color() const;  // grid lines, axes
  ImU32 warning_color() const;
  float px(float size) const { return size * scale; }
};

// Loads the first installed font of each kind. REQUIRES: ImGui's context exists, and no frame has
// started.
void load_fonts();
// Sets ImGui's colours and sizes.
void apply_theme(const Theme& theme);

}  // namespace hearth
