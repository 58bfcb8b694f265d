// Named numbers side by side, such as "running  8 of 16". They wrap at the available width.
#pragma once

#include <span>
#include <string>

#include <imgui.h>

#include "ui/theme.h"

namespace hearth {

struct NamedNumber {
  const char* name = "";
  std::string value;
  std::string tooltip;    // may be empty
  bool headline = false;  // the number of the panel, in large type
};

void draw_tiles(const Theme& theme, std::span<const NamedNumber> tiles);

// A panel's headline number on a line with buttons: large, with what it is beside it.
void draw_headline(const Theme& theme, const std::string& value, const char* name,
                   const char* tooltip);
// How wide that is.
float headline_width(const Theme& theme, const std::string& value, const char* name);

// Puts the next item on the same line if an item of this width fits there, and returns whether it
// does.
bool same_line_if_fits(float width, float spacing = -1);
// The width of a button or checkbox with this label.
float button_width(const char* label);
float checkbox_width(const char* label);
// ImGui::Checkbox() with an outline, which shows the box while it is empty.
bool outlined_checkbox(const char* label, bool* value);

}  // namespace hearth
