#include "ui/item_log.h"

#include <imgui_internal.h>

namespace hearth {

ItemLog& ItemLog::instance() {
  static ItemLog log;
  return log;
}

void ItemLog::enable(bool enabled) { ImGui::GetCurrentContext()->TestEngineHookItems = enabled; }

void ItemLog::begin_frame() { items_.clear(); }

void ItemLog::add(ImGuiID id, ImVec2 min, ImVec2 max, bool on_top) {
  if (id == 0) return;
  // A tab reports its label before its position.
  if (items_.empty() || items_.back().id != id || items_.back().max.x > items_.back().min.x)
    items_.push_back({.id = id, .label = {}, .min = {}, .max = {}});
  items_.back().min = min;
  items_.back().max = max;
  items_.back().on_top = on_top;
}

void ItemLog::name(ImGuiID id, std::string_view label) {
  // The label usually follows the position directly, except for windows and tabs.
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->id != id) continue;
    item->label = label;
    return;
  }
  items_.push_back({.id = id, .label = std::string(label), .min = {}, .max = {}});
}

std::optional<LoggedItem> ItemLog::find(std::string_view label) const {
  const LoggedItem* found = nullptr;
  for (const LoggedItem& one : items_) {
    if (one.max.x <= one.min.x || one.max.y <= one.min.y) continue;
    const std::string_view visible = std::string_view(one.label).substr(0, one.label.find("##"));
    if (one.label != label && visible != label) continue;
    if (found == nullptr || one.on_top || !found->on_top) found = &one;
  }
  if (found == nullptr) return std::nullopt;
  return *found;
}

}  // namespace hearth

// Called by Dear ImGui if it is built with IMGUI_ENABLE_TEST_ENGINE.

void ImGuiTestEngineHook_ItemAdd(ImGuiContext* context, ImGuiID id, const ImRect& place,
                                 const ImGuiLastItemData*) {
  ImRect visible = place;
  bool on_top = false;
  if (const ImGuiWindow* window = context->CurrentWindow) {
    visible.ClipWith(window->ClipRect);
    on_top = (window->Flags & ImGuiWindowFlags_Popup) != 0;
  }
  hearth::ItemLog::instance().add(id, visible.Min, visible.Max, on_top);
}

void ImGuiTestEngineHook_ItemInfo(ImGuiContext*, ImGuiID id, const char* label,
                                  ImGuiItemStatusFlags) {
  if (label != nullptr) hearth::ItemLog::instance().name(id, label);
}

void ImGuiTestEngineHook_Log(ImGuiContext*, const char*, ...) {}

const char* ImGuiTestEngine_FindItemDebugLabel(ImGuiContext*, ImGuiID) { return nullptr; }
