#include "ui/panels/chat_welcome.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/fonts.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {

const char* draw_welcome(const ActiveModel& active, const Theme& theme) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const auto centered = [&](const std::string& text) {
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (room.x - width) / 2));
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
  };
  ImGui::Dummy({0, std::max(0.0f, room.y * 0.5f - 4 * ImGui::GetFrameHeightWithSpacing())});
  if (!active.model) {
    centered(active.reason);
    if (active.progress >= 0)
      ImGui::ProgressBar(active.progress, {-FLT_MIN, 0},
                         fmt::format("{:.0f} %", active.progress * 100).c_str());
    return nullptr;
  }
  ImGui::PushFont(bold_font(), large_text_size() / theme.scale);
  centered(fmt::format("Chat with {}", active.name));
  ImGui::PopFont();
  ImGui::PushStyleColor(ImGuiCol_Text, style_color(ImGuiCol_TextDisabled));
  centered("Point at a token to see its alternatives.");
  ImGui::PopStyleColor();
  ImGui::Dummy({0, theme.px(6)});
  const char* chosen = nullptr;
  for (const char* const example : chat_examples(active.name)) {
    const float width = std::min(room.x, ImGui::CalcTextSize(example).x + 2 * theme.px(12));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (room.x - width) / 2));
    if (ImGui::Button(example, {width, 0})) chosen = example;
  }
  return chosen;
}

}  // namespace hearth
