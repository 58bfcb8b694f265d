#include "ui/panels/token_alternatives.h"

#include <algorithm>

#include <fmt/format.h>

#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

// One decimal for large values, two for small ones.
std::string percent(float probability) {
  const double value = double{probability} * 100;
  if (value >= 9.995) return fmt::format("{:.1f} %", value);
  return value >= 0.01 ? fmt::format("{:.2f} %", value) : std::string("< 0.01 %");
}

}  // namespace

std::string token_name(const ChatToken& token) {
  for (const ChatAlternative& one : token.alternatives)
    if (one.id == token.id) return one.text;
  return token.text.empty() ? fmt::format("token {}", token.id) : token.text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

ImU32 token_color(const Theme& theme, float probability) {
  const ImVec4 sure = ImGui::ColorConvertU32ToFloat4(style_color(ImGuiCol_FrameBgHovered, 0.45f));
  const ImVec4 doubtful =
      ImGui::ColorConvertU32ToFloat4(with_opacity(theme.warning_color(), 0.55f));
  const auto mix = [&](float a, float b) { return b + (a - b) * probability; };
  return ImGui::ColorConvertFloat4ToU32({mix(sure.x, doubtful.x), mix(sure.y, doubtful.y),
                                         mix(sure.z, doubtful.z), mix(sure.w, doubtful.w)});
}

std::optional<size_t> draw_alternatives(const Theme& theme, const ChatToken& token, bool buttons,
                                        bool enabled) {
  std::optional<size_t> clicked;
  const float number = ImGui::CalcTextSize("< 0.01 %  ").x;
  const float bar = theme.px(70);
  float name = theme.px(60);
  for (const ChatAlternative& one : token.alternatives)
    name = std::max(name, ImGui::CalcTextSize(quoted(one.text).c_str()).x + theme.px(16));
  for (size_t i = 0; i < token.alternatives.size(); ++i) {
    const ChatAlternative& one = token.alternatives[i];
    const bool chosen = one.id == token.id;
    const std::string label = quoted(one.text);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    if (buttons) {
      ImGui::BeginDisabled(chosen || !enabled);
      ImGui::PushID(static_cast<int>(i));
      if (ImGui::Selectable("##alternative", chosen, 0, {name + bar + number, height})) clicked = i;
      name_last_item(fmt::format("alternative {}", i + 1));
      ImGui::PopID();
      ImGui::EndDisabled();
    } else {
      ImGui::Dummy({name + bar + number, height});
    }
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddText(corner, chosen ? theme.text_color() : style_color(ImGuiCol_Text, 0.8f),
                 label.c_str());
    const ImVec2 from{corner.x + name, corner.y + height * 0.2f};
    draw.AddRectFilled(from, {from.x + bar, corner.y + height * 0.8f},
                       style_color(ImGuiCol_FrameBg), theme.px(2));
    draw.AddRectFilled(
        from, {from.x + std::max(theme.px(1), bar * one.probability), corner.y + height * 0.8f},
        style_color(chosen ? ImGuiCol_PlotHistogram : ImGuiCol_SliderGrab), theme.px(2));
    const std::string value = percent(one.probability);
    draw.AddText({corner.x + name + bar + number - ImGui::CalcTextSize(value.c_str()).x, corner.y},
                 theme.text_color(), value.c_str());
  }
  return clicked;
}

void draw_token_tooltip(const Theme& theme, const ChatReply& reply, size_t token, bool can_branch) {
  size_t first = token;
  while (first > 0 && reply.tokens[first - 1].text.empty()) --first;
  ImGui::BeginTooltip();
  for (size_t i = first; i <= token; ++i) {
    const ChatToken& one = reply.tokens[i];
    const bool kept = i < reply.kept_tokens;
    ImGui::Text("%s   %s%s", quoted(token_name(one)).c_str(), percent(one.probability).c_str(),
                kept ? ", kept" : "");
    if (i == token) {
      ImGui::Separator();
      draw_alternatives(theme, one, /*buttons=*/false, /*enabled=*/false);
    }
  }
  ImGui::PushStyleColor(ImGuiCol_Text, style_color(ImGuiCol_TextDisabled));
  ImGui::Text("Token %zu of %zu.%s", token + 1, reply.tokens.size(),
              can_branch ? " Click to branch to another token." : "");
  ImGui::PopStyleColor();
  ImGui::EndTooltip();
}

}  // namespace hearth
