// Every widget of the last frame with its label and position, so that scripts can click on it. Dear
// ImGui reports widgets through the hooks of its own test engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace hearth {

struct LoggedItem {
  ImGuiID id = 0;
  std::string label;    // including the part after ##
  ImVec2 min, max;      // the visible part
  bool on_top = false;  // in an open menu or popup, which covers everything else
};

class ItemLog {
 public:
  // The log that ImGui's hooks write to. Disabled by default.
  static ItemLog& instance();

  void enable(bool enabled);
  // Call before each frame; clears the items of the previous one.
  void begin_frame();

  // The visible item with this label, compared with and without the part after ##. Of several, one
  // in an open menu or popup wins, then the last one.
  std::optional<LoggedItem> find(std::string_view label) const;
  const std::vector<LoggedItem>& items() const { return items_; }

  // Called by the hooks.
  void add(ImGuiID id, ImVec2 min, ImVec2 max, bool on_top = false);
  void name(ImGuiID id, std::string_view label);

 private:
  std::vector<LoggedItem> items_;
};

}  // namespace hearth
