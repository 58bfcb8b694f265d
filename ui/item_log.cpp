#include "ui/item_log.h"

#include <algorithm>

#include <imgui_internal.h>

namespace hearth {

ItemLog& ItemLog::instance() {
  static ItemLog log;
  return log;
}

void ItemLog::enable(bool enabled) { ImGui::GetCurrentContext()->TestEngineHookItems = enabled; }

void ItemLog::begin_frame() { items_.clear(); }

void ItemLog::add(ImGuiID id, ImVec2 min, ImVec2 max) {
  if (id == 0) return;
  // A tab says its label first.
  if (items_.empty() || items_.back().id != id || items_.back().max.x > items_.back().min.x)
    items_.push_back({.id = id, .label = {}, .min = {}, .max = {}});
  items_.back().min = min;
  items_.back().max = max;
}

void ItemLog::name(ImGuiID id, std::string_view label) {
  // The label comes right after the place, but for windows and tabs.
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->id != id) continue;
    item->label = label;
    return;
  }
  items_.push_back({.id = id, .label = std::string(label), .min = {}, .max = {}});
}

std::optional<LoggedItem> ItemLog::find(std::string_view label) const {
  const auto item = std::find_if(items_.rbegin(), items_.rend(), [&](const LoggedItem& one) {
    if (one.max.x <= one.min.x || one.max.y <= one.min.y) return false;
    return one.label == label ||
           std::string_view(one.label).substr(0, one.label.find("##")) == label;
  });
  if (item == items_.rend()) return std::nullopt;
  return *item;
}

}  // namespace hearth

// What Dear ImGui calls when it is built with IMGUI_ENABLE_TEST_ENGINE.

void ImGuiTestEngineHook_ItemAdd(ImGuiContext* context, ImGuiID id, const ImRect& place,
                                 const ImGuiLastItemData*) {
  ImRect visible = place;
  if (context->CurrentWindow != nullptr) visible.ClipWith(context->CurrentWindow->ClipRect);
  hearth::ItemLog::instance().add(id, visible.Min, visible.Max);
}

void ImGuiTestEngineHook_ItemInfo(ImGuiContext*, ImGuiID id, const char* label,
                                  ImGuiItemStatusFlags) {
  if (label != nullptr) hearth::ItemLog::instance().name(id, label);
}

void ImGuiTestEngineHook_Log(ImGuiContext*, const char*, ...) {}

const char* ImGuiTestEngine_FindItemDebugLabel(ImGuiContext*, ImGuiID) { return nullptr; }
