// The dashboard's layout: the menu View, panels that are moved to another region, and layouts that
// are saved under a name.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "ui/dashboard.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

constexpr std::array kZooms = {0.75f, 1.0f, 1.25f, 1.5f, 2.0f};
constexpr const char* kDraggedPanel = "panel";
constexpr const char* kLayoutsKey = "layouts";

}  // namespace

Dashboard::Tab* Dashboard::find(std::string_view key) {
  const auto found =
      std::ranges::find_if(tabs_, [&](const Tab& tab) { return tab.panel->info().key == key; });
  return found == tabs_.end() ? nullptr : &*found;
}

// The demo has no model to chat with, so the chat takes no space there unless it is asked for.
bool Dashboard::shows(const Tab& tab) const {
  return tab.visible && (chat_in_demo_ || !host_.is_demo() || tab.panel->info().key != "chat");
}

bool Dashboard::shows_simple() const {
  const bool on_server = host_.view().connected && host_.engine() == nullptr;
  return simple_ && !comparing_ && !host_.is_demo() && !on_server;
}

void Dashboard::show(Tab& tab) {
  simple_ = false;
  tab.visible = tab.select = true;
  if (tab.panel->info().key == "chat") chat_in_demo_ = true;
}

LayoutState Dashboard::layout() const {
  LayoutState state{.splits = splits_, .zoom = zoom_};
  for (const Tab& tab : tabs_) {
    const PanelInfo& info = tab.panel->info();
    const bool visible = comparing_ ? tab.visible_before : tab.visible;
    if (!visible && info.key != kCompareKey) state.hidden.emplace_back(info.key);
    if (tab.active) state.front.emplace_back(info.key);
    if (tab.region != info.region) state.regions[std::string(info.key)] = tab.region;
  }
  return state;
}

void Dashboard::use_layout(const LayoutState& state) {
  for (Tab& tab : tabs_) {
    const PanelInfo& info = tab.panel->info();
    // While a comparison has the window, this is for afterwards.
    tab.visible_before =
        info.key != kCompareKey && std::ranges::find(state.hidden, info.key) == state.hidden.end();
    if (!comparing_) tab.visible = tab.visible_before;
    tab.select = std::ranges::find(state.front, info.key) != state.front.end();
    const auto moved = state.regions.find(std::string(info.key));
    tab.region = moved == state.regions.end() ? info.region : moved->second;
  }
  splits_ = state.splits;
  zoom_ = state.zoom;
  restyle_ = true;
}

void Dashboard::use_preset(const LayoutPreset& preset) {
  std::vector<std::string_view> panels;
  for (const Tab& tab : tabs_) panels.push_back(tab.panel->info().key);
  LayoutState state = layout();
  // A preset with large type leaves the size to which the user returns afterwards.
  if (preset.zoom > 0 && zoom_ != preset.zoom) zoom_before_ = zoom_;
  if (preset.zoom == 0 && zoom_before_ > 0) state.zoom = std::exchange(zoom_before_, 0.0f);
  use_layout(apply_preset(preset, state, panels));
  simple_ = false;
}

void Dashboard::use_view(std::string_view name) {
  if (name == "simple") show_simple();
  if (name == "engine") show_engine();
  for (const LayoutPreset& preset : layout_presets())
    if (name == "class" && preset.name == "Classroom") use_preset(preset);
}

// The context menu of a tab; the tab can also be dragged to another region.
void Dashboard::draw_tab_menu(Tab& tab) {
  const PanelInfo& info = tab.panel->info();
  const std::string name(info.name);
  if (ImGui::BeginDragDropSource()) {
    ImGui::SetDragDropPayload(kDraggedPanel, info.key.data(), info.key.size());
    ImGui::Text("Move %s", name.c_str());
    ImGui::EndDragDropSource();
  }
  if (!ImGui::BeginPopupContextItem((name + " menu").c_str())) return;
  ImGui::TextDisabled("Move %s to", name.c_str());
  for (size_t i = 0; i < kRegions; ++i) {
    const auto region = static_cast<Region>(i);
    if (ImGui::MenuItem(std::string(part_of(region).name).c_str(), nullptr, tab.region == region))
      move(tab, region);
  }
  ImGui::Separator();
  if (ImGui::MenuItem("Hide")) tab.visible = false;
  ImGui::EndPopup();
}

void Dashboard::move(Tab& tab, Region region) {
  tab.region = region;
  tab.select = true;
}

void Dashboard::take_dragged_tab(Region region, const Box& box) {
  const ImRect area(box.x, box.y, box.x + box.width, box.y + box.height);
  if (!ImGui::BeginDragDropTargetCustom(area, ImGui::GetID("##drop"))) return;
  if (const ImGuiPayload* payload = ImGui::AcceptDragDropPayload(kDraggedPanel)) {
    const std::string_view key(static_cast<const char*>(payload->Data),
                               static_cast<size_t>(payload->DataSize));
    if (Tab* const tab = find(key)) move(*tab, region);
  }
  ImGui::EndDragDropTarget();
}

void Dashboard::draw_layouts_menu() {
  nlohmann::json saved = settings_.get(kLayoutsKey, nlohmann::json::object());
  if (!saved.is_object()) saved = nlohmann::json::object();
  std::string removed;
  for (const auto& [name, layout] : saved.items()) {
    if (!ImGui::BeginMenu(name.c_str())) continue;
    if (ImGui::MenuItem("Use")) {
      use_layout(read_layout(layout));
      simple_ = false;
    }
    if (ImGui::MenuItem("Delete")) removed = name;
    ImGui::EndMenu();
  }
  if (saved.empty()) ImGui::TextDisabled("None are saved yet.");
  ImGui::Separator();
  ImGui::SetNextItemWidth(theme_.px(160));
  bool save = line_box("##layout name", layout_name_);
  ImGui::SameLine();
  ImGui::BeginDisabled(layout_name_.empty());
  save |= ImGui::Button("Save layout");
  ImGui::EndDisabled();
  ImGui::SetItemTooltip("Save where panels are, their sizes and the zoom under this name.");
  if (save && !layout_name_.empty()) {
    saved[layout_name_] = layout_json(layout());
    layout_name_.clear();
  }
  if (!removed.empty()) saved.erase(removed);
  settings_.set(kLayoutsKey, saved);
}

void Dashboard::draw_view_menu() {
  int number = 0;
  for (Tab& tab : tabs_) {
    const std::string name(tab.panel->info().name);
    const std::string shortcut = ++number < 10 ? fmt::format("Ctrl+{}", number) : "";
    if (ImGui::MenuItem(name.c_str(), shortcut.c_str(), !shows_simple() && shows(tab))) {
      if (shows_simple() || !shows(tab))
        show(tab);
      else
        tab.visible = chat_in_demo_ = false;
    }
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("%s", std::string(tab.panel->info().description).c_str());
  }
  ImGui::Separator();
  if (ImGui::MenuItem("Simple view", "Ctrl+E", shows_simple(), !host_.is_demo())) show_simple();
  ImGui::SetItemTooltip("Only the chat, with the model and its speed.");
  for (const LayoutPreset& preset : layout_presets()) {
    if (ImGui::MenuItem(std::string(preset.name).c_str())) use_preset(preset);
    ImGui::SetItemTooltip("%s", std::string(preset.description).c_str());
  }
  if (ImGui::BeginMenu("My layouts")) {
    draw_layouts_menu();
    ImGui::EndMenu();
  }
  ImGui::Separator();
  if (ImGui::MenuItem("Dark", nullptr, theme_.dark) && !theme_.dark) theme_.dark = restyle_ = true;
  if (ImGui::MenuItem("Light", nullptr, !theme_.dark) && theme_.dark) {
    theme_.dark = false;
    restyle_ = true;
  }
  if (ImGui::BeginMenu("Zoom")) {
    for (const float zoom : kZooms) {
      if (!ImGui::MenuItem(fmt::format("{:.0f} %", zoom * 100).c_str(), nullptr, zoom == zoom_))
        continue;
      zoom_ = zoom;
      restyle_ = true;
    }
    ImGui::EndMenu();
  }
}

}  // namespace hearth
