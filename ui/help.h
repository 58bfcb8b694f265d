// The help windows: keyboard shortcuts with the meaning of colours, and the glossary. Call only
// from the window's thread.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "ui/data/glossary.h"
#include "ui/theme.h"

namespace hearth {

class Help {
 public:
  Help() : glossary_(parse_glossary(glossary_markdown())) {}

  // The entries of the menu "Help".
  void draw_menu();
  // The windows that are open.
  void draw(const Theme& theme);
  void toggle_shortcuts() { shortcuts_open_ = !shortcuts_open_; }
  void toggle_glossary() { glossary_open_ = !glossary_open_; }
  // How many glossary entries the last frame listed.
  size_t glossary_shown() const { return glossary_shown_; }

 private:
  void draw_shortcuts(const Theme& theme);
  void draw_glossary(const Theme& theme);

  std::vector<GlossaryEntry> glossary_;
  std::array<char, 64> search_ = {};
  size_t glossary_shown_ = 0;
  bool shortcuts_open_ = false, glossary_open_ = false;
};

}  // namespace hearth
