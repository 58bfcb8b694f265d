// Every widget of the last frame with its label and place, for scripts that click as a person
// would. Dear ImGui reports them through the hooks it has for its own test engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace hearth {

struct LoggedItem {
  ImGuiID id = 0;
  std::string label;    // the visible part and what follows ##
  ImVec2 min, max;      // as far as it is visible
  bool on_top = false;  // of an open menu or popup, which lies over everything else
};

class ItemLog {
 public:
  // The one that ImGui's hooks write to. Nothing is logged unless somebody asks.
  static ItemLog& instance();

  void enable(bool enabled);
  // Before a frame; what the last one had stays until then.
  void begin_frame();

  // The visible item whose label is exactly this, with or without what follows ##; of several one
  // of an open menu or popup, then the last.
  std::optional<LoggedItem> find(std::string_view label) const;
  const std::vector<LoggedItem>& items() const { return items_; }

  // For the hooks.
  void add(ImGuiID id, ImVec2 min, ImVec2 max, bool on_top = false);
  void name(ImGuiID id, std::string_view label);

 private:
  std::vector<LoggedItem> items_;
};

}  // namespace hearth
