// Small widgets that several panels use.
#pragma once

#include <string>

#include <imgui.h>

#include "ui/data/soft_wrap.h"
#include "ui/theme.h"

namespace hearth {

// A multi-line text box with word wrap, whose state is `wrap`. Enter sets `entered`; Shift+Enter
// inserts a line feed.
struct MessageBox {
  bool entered = false;
  bool edited = false;
  bool active = false;
};
MessageBox message_box(const char* label, std::string& text, SoftWrap& wrap, ImVec2 size,
                       const char* hint);
// A single-line text box. Returns true when Enter was pressed.
bool line_box(const char* label, std::string& text);
// A multi-line text box in which Enter inserts a line feed. Returns true if it was edited.
bool text_box(const char* label, std::string& text, ImVec2 size);

// Wrapped text in a faint colour.
void faint_text(const std::string& text);
void warning_text(const Theme& theme, const std::string& text);
// A colour of ImGui's style with its opacity multiplied.
ImU32 style_color(ImGuiCol color, float opacity = 1);
ImU32 with_opacity(ImU32 color, float opacity);
// Names the item that was just drawn for scripts, if its label is not suitable.
void name_last_item(const std::string& name);
// ImGui::BeginCombo(), with its label visible to scripts.
bool begin_combo(const std::string& label, const std::string& preview);
// Registers an area that is not a widget, such as a token, under a name for scripts. Check
// is_logging() first to avoid building the name needlessly.
bool is_logging();
void log_place(const std::string& name, ImVec2 min, ImVec2 max);

}  // namespace hearth
