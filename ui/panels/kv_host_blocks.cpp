#include "ui/panels/kv_host_blocks.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/theme.h"

namespace hearth {

const char* no_cache_words(const EngineView& view) {
  return view.connected && view.policy.kv == KvAllocation::kNone
             ? "This policy keeps no KV cache: every step computes all tokens of its sequences "
               "again."
             : nullptr;
}

void draw_host_blocks(const PanelContext& context) {
  const SchedulerCounts& counts = context.view.counts;
  const bool swaps = context.view.policy.preemption == Preemption::kSwap;
  if (counts.swap_total == 0 || (counts.swap_used == 0 && !swaps)) return;
  const Theme& theme = context.theme;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const std::string name =
      fmt::format("host memory: {} of {}", counts.swap_used, counts.swap_total);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = small_text_size() + theme.px(2);
  const float left = at.x + small_text_extent(name.c_str()).x + theme.px(8);
  const float width = std::max(at.x + ImGui::GetContentRegionAvail().x - left, 1.0f);
  ImGui::InvisibleButton("host blocks", {left - at.x + width, height});
  const bool hovered = ImGui::IsItemHovered();
  draw_small_text(draw, at, faded(theme.text_color(), 0.75f), name.c_str());
  draw.AddRectFilled({left, at.y}, {left + width, at.y + height},
                     theme.phase_color(PhaseColor::kFree));
  const float cell = width / static_cast<float>(counts.swap_total);
  float x = left;
  for (const SequenceView& sequence : context.view.sequences) {
    if (sequence.state != SequenceState::kSwapped) continue;
    const float end = std::min(x + cell * static_cast<float>(sequence.blocks), left + width);
    draw.AddRectFilled({x, at.y}, {end, at.y + height}, theme.sequence_color(sequence.id));
    draw_hatching(draw, {x, at.y}, {end, at.y + height}, theme.phase_color(PhaseColor::kSwapped),
                  theme.px(5));
    const float mouse = ImGui::GetMousePos().x;
    if (hovered && mouse >= x && mouse < end) {
      context.selection.next_hovered = sequence.id;
      ImGui::SetTooltip("Request #%llu is swapped out: %u blocks in host memory.",
                        static_cast<unsigned long long>(sequence.id), sequence.blocks);
    }
    x = end;
  }
}

}  // namespace hearth
