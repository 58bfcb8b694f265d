#include "ui/dashboard.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "runtime/log.h"
#include "ui/data/chat_export.h"
#include "ui/shortcuts.h"

namespace hearth {
namespace {

constexpr float kRegionGap = 6;

const char* state_name(EngineState state) {
  switch (state) {
    case EngineState::kRunning:
      return "running";
    case EngineState::kPaused:
      return "paused";
    case EngineState::kDraining:
      return "draining";
    case EngineState::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

Dashboard::Dashboard(EngineHost& host, Settings& settings, Theme& theme)
    : host_(host), settings_(settings), theme_(theme) {
  for (std::unique_ptr<Panel>& panel : PanelRegistration::make_all()) {
    Tab tab{.panel = std::move(panel)};
    tab.region = tab.panel->info().region;
    tabs_.push_back(std::move(tab));
  }
  use_layout(read_layout(settings.get("layout", nlohmann::json())));
  theme_.dark = settings.get("dark", true);
  simple_ = settings.get("simple", true);
}

Dashboard::~Dashboard() = default;

PanelContext Dashboard::context() {
  return {.view = host_.view(),
          .host = host_,
          .settings = settings_,
          .theme = theme_,
          .selection = selection_};
}

void Dashboard::set_density(float density) {
  if (density == density_) return;
  density_ = density;
  restyle_ = true;
}

void Dashboard::restyle() {
  theme_.scale = density_ * zoom_ * fit_;
  apply_theme(theme_);
  restyle_ = false;
}

void Dashboard::draw() {
  const ImVec2 size = ImGui::GetMainViewport()->Size;
  const float fit = shows_simple() ? 1 : fitting_scale(size.x / density_, size.y / density_);
  if (std::exchange(fit_, fit) != fit) restyle_ = true;
  // Applied at the start of a frame, so that no frame mixes two styles.
  if (restyle_) restyle();
  const PanelContext shared = context();
  if (host_.has_dropped() && !is_attachment(host_.dropped()))
    for (Tab& tab : tabs_)
      if (tab.panel->info().key == "models") tab.visible = tab.select = true;
  if (host_.has_lesson())
    for (Tab& tab : tabs_)
      if (tab.panel->info().key == "lessons") tab.visible = tab.select = true;
  follow_comparison();
  // The simple view has no place for these.
  if ((host_.has_dropped() && !is_attachment(host_.dropped())) || host_.has_lesson()) show_engine();
  for (const Tab& tab : tabs_) tab.panel->update(shared);
  handle_shortcuts();
  draw_menu();
  selection_.next_hovered = 0;
  simple_view_.update(shared);
  if (!shows_simple())
    draw_regions();
  else if (simple_view_.draw(shared, *find("chat")->panel, *find("models")->panel))
    show_engine();
  selection_.hovered = selection_.next_hovered;
  help_.draw(theme_);
}

void Dashboard::draw_menu() {
  if (!ImGui::BeginMainMenuBar()) return;
  if (ImGui::BeginMenu("Hearth")) {
    if (ImGui::MenuItem("Quit", "Ctrl+Q")) close_ = true;
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("View")) {
    draw_view_menu();
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Help")) {
    help_.draw_menu();
    ImGui::EndMenu();
  }
  draw_status();
  ImGui::EndMainMenuBar();
}

// Shows the engine and its state at the right end of the menu bar.
void Dashboard::draw_status() {
  const EngineView& view = host_.view();
  const EngineHost::Loading loading = host_.loading();
  std::string text;
  if (loading.active)
    text = loading.total_bytes > 0 ? fmt::format("loading {}: {} %", loading.what,
                                                 loading.done_bytes * 100 / loading.total_bytes)
                                   : loading.what + " ...";
  else if (!view.failure.empty())
    text = view.failure;
  else if (view.connected)
    text = fmt::format("{}: {} running, {} waiting{}{}{}", view.source, view.counts.running,
                       view.counts.waiting, view.state == EngineState::kRunning ? "" : ", ",
                       view.state == EngineState::kRunning ? "" : state_name(view.state),
                       view.kernels.done ? ""
                                         : fmt::format(", compiling kernels: {} of {}",
                                                       view.kernels.ready, view.kernels.total));
  else
    text = "no engine";
  const float width = ImGui::CalcTextSize(text.c_str()).x + theme_.px(16);
  const float right = ImGui::GetWindowWidth() - width;
  if (right > ImGui::GetCursorPosX()) ImGui::SetCursorPosX(right);
  const bool failed = !view.failure.empty() && !loading.active;
  ImGui::PushStyleColor(
      ImGuiCol_Text, failed ? theme_.warning_color() : ImGui::GetColorU32(ImGuiCol_TextDisabled));
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
}

void Dashboard::draw_regions() {
  std::array<bool, kRegions> used{};
  for (const Tab& tab : tabs_) used[static_cast<size_t>(tab.region)] |= shows(tab);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float gap = theme_.px(kRegionGap);
  const Box whole{viewport->WorkPos.x + gap, viewport->WorkPos.y + gap,
                  viewport->WorkSize.x - 2 * gap, viewport->WorkSize.y - 2 * gap};
  const Arrangement arrangement = arrange(whole, gap, splits_, used);
  for (size_t i = 0; i < kRegions; ++i)
    if (!arrangement.regions[i].empty())
      draw_region(static_cast<Region>(i), arrangement.regions[i]);
  draw_splitters(arrangement);
}

void Dashboard::draw_region(Region region, const Box& box) {
  ImGui::SetNextWindowPos({box.x, box.y});
  ImGui::SetNextWindowSize({box.width, box.height});
  constexpr ImGuiWindowFlags kFlags =
      ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
      ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetColorU32(ImGuiCol_ChildBg));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {theme_.px(8), theme_.px(4)});
  const std::string name = fmt::format("##region{}", static_cast<int>(region));
  ImGui::Begin(name.c_str(), nullptr, kFlags);
  const PanelContext shared = context();
  if (ImGui::BeginTabBar("##tabs", ImGuiTabBarFlags_FittingPolicyScroll)) {
    for (Tab& tab : tabs_) {
      const PanelInfo& info = tab.panel->info();
      if (tab.region != region) continue;
      tab.active = false;
      if (!shows(tab)) continue;
      const ImGuiTabItemFlags flags =
          tab.select ? ImGuiTabItemFlags_SetSelected : ImGuiTabItemFlags_None;
      tab.select = false;
      const std::string title(info.name);
      const bool in_front = ImGui::BeginTabItem(title.c_str(), nullptr, flags);
      draw_tab_menu(tab);
      if (!in_front) continue;
      tab.active = true;
      if (ImGui::BeginChild(title.c_str())) tab.panel->draw(shared);
      tab.below = ImGui::GetScrollMaxY();
      ImGui::EndChild();
      ImGui::EndTabItem();
    }
    ImGui::EndTabBar();
  }
  take_dragged_tab(region, box);
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

// Each splitter is a thin window between two regions.
void Dashboard::draw_splitters(const Arrangement& arrangement) {
  int number = 0;
  for (const Splitter& splitter : arrangement.splitters) {
    const Box& box = splitter.box;
    ImGui::SetNextWindowPos({box.x, box.y});
    ImGui::SetNextWindowSize({box.width, box.height});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
    const std::string name = fmt::format("##splitter{}", number++);
    ImGui::Begin(name.c_str(), nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                     ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBackground |
                     ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav);
    ImGui::InvisibleButton("##grip", {std::max(box.width, 1.0f), std::max(box.height, 1.0f)});
    if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
      ImGui::SetMouseCursor(splitter.vertical ? ImGuiMouseCursor_ResizeEW
                                              : ImGuiMouseCursor_ResizeNS);
      ImGui::GetWindowDrawList()->AddRectFilled({box.x, box.y},
                                                {box.x + box.width, box.y + box.height},
                                                ImGui::GetColorU32(ImGuiCol_SeparatorHovered));
    }
    if (ImGui::IsItemActive()) {
      const ImVec2 moved = ImGui::GetIO().MouseDelta;
      drag(splitter, splitter.vertical ? moved.x : moved.y);
    }
    ImGui::End();
    ImGui::PopStyleVar(3);
  }
}

void Dashboard::handle_shortcuts() {
  constexpr ImGuiInputFlags kGlobal = ImGuiInputFlags_RouteGlobal;
  const auto pressed = [](ImGuiKeyChord chord) { return ImGui::Shortcut(chord, kGlobal); };
  for (const Shortcut& shortcut : kShortcuts) {
    if (shortcut.action == ShortcutAction::kShowPanel) {
      for (size_t i = 0; i < std::min<size_t>(tabs_.size(), 9); ++i)
        if (pressed(ImGuiMod_Ctrl | static_cast<ImGuiKey>(ImGuiKey_1 + static_cast<int>(i))))
          show(tabs_[i]);
    } else if (shortcut.chord != 0 && pressed(shortcut.chord)) {
      act(shortcut.action);
    }
  }
}

void Dashboard::act(ShortcutAction action) {
  switch (action) {
    case ShortcutAction::kNone:
    case ShortcutAction::kShowPanel:
      break;
    case ShortcutAction::kToggleView:
      if (shows_simple())
        show_engine();
      else
        show_simple();
      break;
    case ShortcutAction::kPause:
      host_.pause(!host_.engine_paused());
      break;
    case ShortcutAction::kStep:
      if (host_.scrubber().active())
        host_.scrubber().step(1);
      else if (EngineControl* const control = host_.control())
        control->step_once();
      break;
    case ShortcutAction::kStepBack:
      host_.scrubber().step(-1);
      break;
    case ShortcutAction::kFind:
      if (!shows_simple()) show(*find("chat"));
      selection_.find_in_chat = true;
      break;
    case ShortcutAction::kGlossary:
      help_.toggle_glossary();
      break;
    case ShortcutAction::kHelp:
      help_.toggle_shortcuts();
      break;
    case ShortcutAction::kQuit:
      close_ = true;
      break;
  }
}

// A comparison has the window to itself while it is open, or shares it with its lesson. The menu
// View opens and closes it, too.
void Dashboard::follow_comparison() {
  const auto compare = std::ranges::find_if(
      tabs_, [](const Tab& tab) { return tab.panel->info().key == kCompareKey; });
  if (compare == tabs_.end()) return;
  if (compare->visible != comparing_ && host_.comparing() == comparing_) {
    if (compare->visible)
      host_.open_comparison({.policies = comparison_for(host_.view().policy)});
    else
      host_.close_comparison();
  }
  if (host_.comparing() == comparing_) return;
  comparing_ = host_.comparing();
  for (Tab& tab : tabs_) {
    if (comparing_) tab.visible_before = tab.visible;
    const std::string_view key = tab.panel->info().key;
    tab.visible =
        comparing_ ? key == "lessons" && host_.comparing_for_lesson() : tab.visible_before;
    tab.select = tab.active && tab.visible;
  }
  compare->visible = compare->select = comparing_;
}

ValueSink Dashboard::values() const {
  ValueSink sink;
  sink.begin("dashboard");
  const EngineView& view = host_.view();
  sink.set("connected", view.connected ? 1 : 0);
  sink.set("loading", host_.loading().active ? 1 : 0);
  sink.set("failure", view.failure);
  sink.set("source", view.source);
  sink.set("state", std::string(state_name(view.state)));
  sink.set("kernels_done", view.kernels.done ? 1 : 0);
  sink.set("seconds", view.now);
  sink.set("generated_tokens", static_cast<double>(view.totals.generated_tokens));
  sink.set("dark", theme_.dark ? 1 : 0);
  sink.set("view", std::string(shows_simple() ? "simple" : "engine"));
  sink.set("zoom", zoom_);
  sink.set("tokens_per_s", simple_view_.tokens_per_s());
  sink.set("frames_per_s", ImGui::GetIO().Framerate);
  sink.set("glossary_shown", static_cast<double>(help_.glossary_shown()));
  for (const Tab& tab : tabs_) {
    const PanelInfo& info = tab.panel->info();
    sink.begin(info.key);
    sink.set("visible", shows(tab) ? 1 : 0);
    sink.set("front", tab.active ? 1 : 0);
    sink.set("region", std::string(part_of(tab.region).key));
    sink.set("below", tab.below);
    tab.panel->report(sink);
  }
  return sink;
}

void Dashboard::store_layout() {
  settings_.set("layout", layout_json(layout()));
  settings_.set("dark", theme_.dark);
  settings_.set("simple", simple_);
}

void Dashboard::save() {
  for (const Tab& tab : tabs_) tab.panel->save();
  store_layout();
  if (const Status saved = settings_.save(); !saved.ok()) log_line(saved.error().message);
}

}  // namespace hearth
