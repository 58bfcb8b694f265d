#include "ui/panels/kv_tree.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/block_tree.h"
#include "ui/draw/plot.h"
#include "ui/theme.h"

namespace hearth {

void draw_block_tree(const PanelContext& context) {
  const Theme& theme = context.theme;
  const BlockTree tree = block_tree(context.view, context.selection.marked());
  if (tree.empty()) {
    ImGui::TextDisabled("No running sequences share blocks now.");
    return;
  }
  ImGui::Text("%zu sequences: %zu blocks instead of %u", tree.rows.size(), tree.cells.size(),
              tree.block_uses);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left = at.x + plot_label_width(), height = theme.px(16);
  const float room = ImGui::GetContentRegionAvail().x - plot_label_width();
  const float width =
      std::clamp(room / static_cast<float>(std::max(tree.columns, 1u)), theme.px(2), theme.px(26));
  const float gap = width >= theme.px(5) ? 1.0f : 0.0f;
  ImGui::InvisibleButton(
      "block tree", {plot_label_width() + room, height * static_cast<float>(tree.rows.size())});
  const bool hovered = ImGui::IsItemHovered();
  const ImVec2 mouse = ImGui::GetMousePos();
  for (size_t i = 0; i < tree.rows.size(); ++i) {
    const std::string name = fmt::format("#{}", tree.rows[i]);
    draw_small_text(draw,
                    {left - small_text_extent(name.c_str()).x - theme.px(5),
                     at.y + height * static_cast<float>(i) + theme.px(1)},
                    faded(theme.text_color(), 0.75f), name.c_str());
  }
  for (const BlockTree::Cell& cell : tree.cells) {
    const ImVec2 from(left + width * static_cast<float>(cell.column),
                      at.y + height * static_cast<float>(cell.first_row));
    const ImVec2 to(from.x + width - gap, from.y + height * static_cast<float>(cell.rows) - 1);
    draw.AddRectFilled(from, to, theme.sequence_color(tree.rows[cell.first_row]));
    if (cell.rows > 1)
      draw.AddRect(from, to, theme.phase_color(PhaseColor::kSharedPrefix), 0, 0, theme.px(2));
    if (!hovered || mouse.x < from.x || mouse.x >= to.x || mouse.y < from.y || mouse.y >= to.y)
      continue;
    context.selection.next_hovered = tree.rows[cell.first_row];
    ImGui::SetTooltip("Block %u: tokens %u to %u, shared by %u of these sequences", cell.block,
                      cell.column * kTokensPerBlock, (cell.column + 1) * kTokensPerBlock - 1,
                      cell.rows);
  }
}

}  // namespace hearth
