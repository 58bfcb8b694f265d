#include "ui/help.h"

#include <algorithm>

#include <imgui.h>

#include "ui/shortcuts.h"

namespace hearth {

void Help::draw_menu() {
  if (ImGui::MenuItem("Shortcuts and colours", "Ctrl+H")) shortcuts_open_ = true;
  if (ImGui::MenuItem("Glossary", "Ctrl+G")) glossary_open_ = true;
}

void Help::draw(const Theme& theme) {
  glossary_shown_ = 0;
  if (shortcuts_open_) draw_shortcuts(theme);
  if (glossary_open_) draw_glossary(theme);
}

void Help::draw_shortcuts(const Theme& theme) {
  ImGui::SetNextWindowSize({theme.px(460), 0}, ImGuiCond_Appearing);
  if (ImGui::Begin("Shortcuts and colours", &shortcuts_open_, ImGuiWindowFlags_NoSavedSettings)) {
    const auto row = [](const char* keys, const char* meaning) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(keys);
      ImGui::TableNextColumn();
      ImGui::TextWrapped("%s", meaning);
    };
    if (ImGui::BeginTable("##keys", 2, ImGuiTableFlags_RowBg)) {
      for (const Shortcut& shortcut : kShortcuts) row(shortcut.keys, shortcut.meaning);
      ImGui::EndTable();
    }
    ImGui::SeparatorText("Colours of sequences and blocks");
    for (int i = 0; i < static_cast<int>(PhaseColor::kCount); ++i) {
      const auto phase = static_cast<PhaseColor>(i);
      const ImVec2 corner = ImGui::GetCursorScreenPos();
      const float size = ImGui::GetTextLineHeight();
      ImGui::GetWindowDrawList()->AddRectFilled(corner, {corner.x + size, corner.y + size},
                                                theme.phase_color(phase), theme.px(2));
      ImGui::Dummy({size, size});
      ImGui::SameLine();
      ImGui::TextUnformatted(phase_name(phase));
    }
  }
  ImGui::End();
}

void Help::draw_glossary(const Theme& theme) {
  const ImVec2 screen = ImGui::GetMainViewport()->Size;
  ImGui::SetNextWindowSize(
      {std::min(theme.px(640), screen.x * 0.9f), std::min(theme.px(560), screen.y * 0.9f)},
      ImGuiCond_Appearing);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (ImGui::Begin("Glossary", &glossary_open_, ImGuiWindowFlags_NoSavedSettings)) {
    ImGui::SetNextItemWidth(-FLT_MIN);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::InputTextWithHint("##glossary search", "Search", search_.data(), search_.size());
    if (ImGui::BeginChild("##entries")) {
      const std::string* section = nullptr;
      for (const GlossaryEntry& entry : glossary_) {
        if (!mentions(entry, search_.data())) continue;
        ++glossary_shown_;
        if (section == nullptr || *section != entry.section)
          ImGui::SeparatorText(entry.section.c_str());
        section = &entry.section;
        ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetColorU32(ImGuiCol_TextLink));
        ImGui::TextWrapped("%s", entry.term.c_str());
        ImGui::PopStyleColor();
        ImGui::Indent();
        ImGui::TextWrapped("%s", entry.explanation.c_str());
        ImGui::Unindent();
      }
      if (glossary_shown_ == 0) ImGui::TextDisabled("No entry mentions this.");
    }
    ImGui::EndChild();
  }
  ImGui::End();
}

}  // namespace hearth
