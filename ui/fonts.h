// The dashboard's fonts: embedded ones for text, bold text and code, and the machine's for scripts
// that these lack. Three sizes: small for axes and notes, normal, and large for headline numbers.
// Call only from the window's thread.
#pragma once

#include <imgui.h>

#include "ui/data/markdown.h"

namespace hearth {

inline constexpr float kTextSize = 16;  // normal, at scale 1

// REQUIRES: ImGui's context exists, and no frame has started.
void load_fonts();

ImFont* bold_font();
// The font and the size that text of a style is drawn with.
ImFont* font_of(const TextStyle& style);
float font_size_of(const TextStyle& style);
// The exact width of a character, as ImGui draws it.
float advance_of(char32_t character, const TextStyle& style);

float large_text_size();

}  // namespace hearth
