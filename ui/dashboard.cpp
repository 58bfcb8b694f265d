#include "ui/dashboard.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "runtime/log.h"

namespace hearth {
namespace {

constexpr float kRegionGap = 6;
constexpr std::string_view kCompareKey = "compare";
constexpr std::array kZooms = {0.75f, 1.0f, 1.25f, 1.5f, 2.0f};

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

template <size_t n>
void read_weights(const Settings& settings, std::string_view key, std::array<float, n>& weights) {
  const auto read = settings.get(key, std::vector<float>(weights.begin(), weights.end()));
  if (read.size() != n) return;
  if (std::ranges::all_of(read, [](float weight) { return weight > 0.02f && weight < 1; }))
    std::ranges::copy(read, weights.begin());
}

template <size_t n>
void write_weights(Settings& settings, std::string_view key, const std::array<float, n>& weights) {
  settings.set(key, std::vector<float>(weights.begin(), weights.end()));
}

}  // namespace

Dashboard::Dashboard(EngineHost& host, Settings& settings, Theme& theme)
    : host_(host), settings_(settings), theme_(theme) {
  const auto hidden = settings.get("hidden_panels", std::vector<std::string>{});
  for (std::unique_ptr<Panel>& panel : PanelRegistration::make_all()) {
    Tab tab{.panel = std::move(panel)};
    tab.visible = std::ranges::find(hidden, tab.panel->info().key) == hidden.end() &&
                  tab.panel->info().key != kCompareKey;
    tabs_.push_back(std::move(tab));
  }
  for (const std::string& key : settings.get("front_panels", std::vector<std::string>{}))
    for (Tab& tab : tabs_)
      if (tab.panel->info().key == key) tab.select = true;
  read_weights(settings, "columns", splits_.columns);
  read_weights(settings, "rows", splits_.rows);
  read_weights(settings, "bottom", splits_.bottom);
  read_weights(settings, "side", splits_.side);
  theme_.dark = settings.get("dark", true);
  zoom_ = std::clamp(settings.get("zoom", 1.0f), kZooms.front(), kZooms.back());
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
  theme_.scale = density_ * zoom_;
  apply_theme(theme_);
  restyle_ = false;
}

void Dashboard::draw() {
  // Applied at the start of a frame, so that no frame mixes two styles.
  if (restyle_) restyle();
  const PanelContext shared = context();
  // A dropped file is for the Models panel.
  if (host_.has_dropped())
    for (Tab& tab : tabs_)
      if (tab.panel->info().key == "models") tab.visible = tab.select = true;
  if (host_.has_lesson())
    for (Tab& tab : tabs_)
      if (tab.panel->info().key == "lessons") tab.visible = tab.select = true;
  follow_comparison();
  for (const Tab& tab : tabs_) tab.panel->update(shared);
  handle_shortcuts();
  draw_menu();
  selection_.next_hovered = 0;
  draw_regions();
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

void Dashboard::draw_view_menu() {
  int number = 0;
  for (Tab& tab : tabs_) {
    const std::string name(tab.panel->info().name);
    const std::string shortcut = ++number < 10 ? fmt::format("Ctrl+{}", number) : "";
    if (ImGui::MenuItem(name.c_str(), shortcut.c_str(), tab.visible)) {
      tab.visible = !tab.visible;
      tab.select = tab.visible;
    }
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("%s", std::string(tab.panel->info().description).c_str());
  }
  ImGui::Separator();
  if (ImGui::MenuItem("Show all panels"))
    for (Tab& tab : tabs_) tab.visible = tab.visible || tab.panel->info().key != kCompareKey;
  if (ImGui::MenuItem("Chat only")) show_only({"chat"});
  if (ImGui::MenuItem("Classroom")) show_only({"timeline", "kv", "control", "occupancy"});
  if (ImGui::MenuItem("Reset sizes")) splits_ = {};
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
  for (const Tab& tab : tabs_) used[static_cast<size_t>(tab.panel->info().region)] |= tab.visible;
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
      if (info.region != region) continue;
      tab.active = false;
      if (!tab.visible) continue;
      const ImGuiTabItemFlags flags =
          tab.select ? ImGuiTabItemFlags_SetSelected : ImGuiTabItemFlags_None;
      tab.select = false;
      const std::string title(info.name);
      if (!ImGui::BeginTabItem(title.c_str(), nullptr, flags)) continue;
      tab.active = true;
      if (ImGui::BeginChild(title.c_str())) tab.panel->draw(shared);
      ImGui::EndChild();
      ImGui::EndTabItem();
    }
    ImGui::EndTabBar();
  }
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
  for (size_t i = 0; i < std::min<size_t>(tabs_.size(), 9); ++i)
    if (pressed(ImGuiMod_Ctrl | static_cast<ImGuiKey>(ImGuiKey_1 + static_cast<int>(i))))
      tabs_[i].visible = tabs_[i].select = true;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_H)) help_.toggle_shortcuts();
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_G)) help_.toggle_glossary();
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Q)) close_ = true;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Space))
    host_.pause(host_.view().state != EngineState::kPaused);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_RightArrow) && host_.engine() != nullptr)
    host_.engine()->step_once();
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
        comparing_ ? key == "lessons" && host_.comparing_beside_lesson() : tab.visible_before;
    tab.select = tab.active && tab.visible;
  }
  compare->visible = compare->select = comparing_;
}

void Dashboard::show_only(std::initializer_list<std::string_view> keys) {
  for (Tab& tab : tabs_) tab.visible = std::ranges::find(keys, tab.panel->info().key) != keys.end();
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
  sink.set("glossary_shown", static_cast<double>(help_.glossary_shown()));
  for (const Tab& tab : tabs_) {
    const PanelInfo& info = tab.panel->info();
    sink.begin(info.key);
    sink.set("visible", tab.visible ? 1 : 0);
    sink.set("front", tab.active ? 1 : 0);
    tab.panel->report(sink);
  }
  return sink;
}

void Dashboard::store_layout() {
  std::vector<std::string> hidden, front;
  for (const Tab& tab : tabs_) {
    if (!(comparing_ ? tab.visible_before : tab.visible))
      hidden.emplace_back(tab.panel->info().key);
    if (tab.active) front.emplace_back(tab.panel->info().key);
  }
  settings_.set("hidden_panels", hidden);
  settings_.set("front_panels", front);
  write_weights(settings_, "columns", splits_.columns);
  write_weights(settings_, "rows", splits_.rows);
  write_weights(settings_, "bottom", splits_.bottom);
  write_weights(settings_, "side", splits_.side);
  settings_.set("dark", theme_.dark);
  settings_.set("zoom", zoom_);
}

void Dashboard::save() {
  for (const Tab& tab : tabs_) tab.panel->save();
  store_layout();
  if (const Status saved = settings_.save(); !saved.ok()) log_line(saved.error().message);
}

}  // namespace hearth
