// Small pieces that the chat is drawn with.
#pragma once

#include <string>

#include <imgui.h>

#include "ui/theme.h"

namespace hearth {

// Text of several lines in a box. Enter is `entered`, Shift and Enter a new line.
struct MessageBox {
  bool entered = false;
  bool edited = false;
  bool active = false;
};
MessageBox message_box(const char* label, std::string& text, ImVec2 size, const char* hint);
// One line; true when Enter was pressed.
bool line_box(const char* label, std::string& text);
// Text of several lines, Enter is a new line; true when it was edited.
bool text_box(const char* label, std::string& text, ImVec2 size);

// In a fainter colour, wrapped.
void faint_text(const std::string& text);
void warning_text(const Theme& theme, const std::string& text);
// A colour of ImGui's style with another share of its opacity.
ImU32 style_color(ImGuiCol color, float opacity = 1);
ImU32 with_opacity(ImU32 color, float opacity);
// What scripts call the item that was just drawn, where its label does not say it.
void name_last_item(const std::string& name);
// ImGui::BeginCombo(), which does not tell scripts its label.
bool begin_combo(const std::string& label, const std::string& preview);
// A place that is no widget of its own, such as a token, under a name for scripts.
// Costs nothing to ask first: is_logging().
bool is_logging();
void log_place(const std::string& name, ImVec2 min, ImVec2 max);

}  // namespace hearth
