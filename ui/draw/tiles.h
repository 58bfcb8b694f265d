// Numbers with their names, side by side: "running  8 of 16". They wrap where the width ends.
#pragma once

#include <span>
#include <string>

#include <imgui.h>

#include "ui/theme.h"

namespace hearth {

struct Tile {
  const char* name = "";
  std::string value;
  std::string tooltip;  // shown while the mouse is over it; may be empty
};

void draw_tiles(const Theme& theme, std::span<const Tile> tiles);

// The next item goes on the same line if one of this width has room there, else on a new one:
// false.
bool same_line_if_room(float width, float spacing = -1);
// What a button or checkbox with this label takes.
float button_width(const char* label);
float checkbox_width(const char* label);

}  // namespace hearth
