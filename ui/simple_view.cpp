#include "ui/simple_view.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/axis.h"
#include "ui/data/settings.h"
#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/fonts.h"
#include "ui/panels/chat_widgets.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr size_t kMaxRecent = 8;
constexpr float kColumnWidth = 920;  // of the conversation, at scale 1
constexpr const char* kRecentKey = "models.recent";
constexpr const char* kBuiltIn = "Built-in storyteller";
constexpr const char* kShowEngine = "Show the engine";

std::string short_name(const std::string& model) {
  return model.empty() ? kBuiltIn : std::filesystem::path(model).filename().string();
}

std::string shown_name(const PanelContext& context) {
  if (const EngineHost::Loading loading = context.host.loading(); loading.active)
    return fmt::format("loading {}", loading.what);
  if (context.host.session() != nullptr) return short_name(context.host.choice().model);
  return context.view.connected ? context.view.model : "no model";
}

}  // namespace

void SimpleView::update(const PanelContext& context) {
  speed_.update(context.view.totals.generated_tokens, context.view.now);
  if (!std::exchange(read_, true))
    recent_ = context.settings.get(kRecentKey, std::vector<std::string>{});
  const std::string& model = context.host.choice().model;
  if (context.host.session() == nullptr || model.empty()) return;
  if (!recent_.empty() && recent_.front() == model) return;
  std::erase(recent_, model);
  recent_.insert(recent_.begin(), model);
  if (recent_.size() > kMaxRecent) recent_.resize(kMaxRecent);
  context.settings.set(kRecentKey, recent_);
  picking_ = false;
}

bool SimpleView::draw(const PanelContext& context, Panel& chat, Panel& models) {
  const Theme& theme = context.theme;
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  const float column = std::min(viewport->WorkSize.x, theme.px(kColumnWidth));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetColorU32(ImGuiCol_ChildBg));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding,
                      {std::max(theme.px(8), (viewport->WorkSize.x - column) / 2), theme.px(8)});
  ImGui::Begin("##simple", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus);
  ImGui::PopStyleVar();
  const float button = button_width(kShowEngine);
  const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
  const float height = large_text_size() + theme.px(4);
  const auto center = [&](float item) {
    ImGui::SetCursorPosY(ImGui::GetWindowContentRegionMin().y + (height - item) / 2);
  };
  center(ImGui::GetFrameHeight());
  draw_models(context, std::min(theme.px(300), width * 0.4f));
  ImGui::SameLine(0, theme.px(16));
  center(ImGui::GetFrameHeight());
  draw_headline(theme, format_value(speed_.tokens_per_s(), Unit::kPlain), "tokens/s, last second",
                "Tokens generated per second, in the last second of work. Below an answer is the "
                "mean over all of it.");
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + width - button);
  center(ImGui::GetFrameHeight());
  const bool show_engine = ImGui::Button(kShowEngine);
  ImGui::SetItemTooltip("See batching, KV blocks and latency while the model answers (Ctrl+E).");
  ImGui::SetCursorPosY(ImGui::GetWindowContentRegionMin().y + height + theme.px(6));
  if (ImGui::BeginChild("chat")) chat.draw(context);
  ImGui::EndChild();
  ImGui::End();
  ImGui::PopStyleColor();
  if (picking_) draw_picker(context, models);
  return show_engine;
}

void SimpleView::draw_models(const PanelContext& context, float width) {
  ImGui::SetNextItemWidth(width);
  if (!begin_combo("##model", shown_name(context))) {
    ImGui::SetItemTooltip("The model that answers. Choose another one here.");
    return;
  }
  const auto choice = [&](const std::string& model) {
    const bool current = context.host.session() != nullptr && context.host.choice().model == model;
    if (ImGui::Selectable(short_name(model).c_str(), current) && !current) {
      ModelChoice wanted = context.host.choice();
      wanted.model = model;
      context.host.open(std::move(wanted));
    }
    if (!model.empty()) ImGui::SetItemTooltip("%s", model.c_str());
  };
  choice("");
  for (const std::string& model : recent_) {
    ImGui::PushID(model.c_str());
    choice(model);
    ImGui::PopID();
  }
  ImGui::Separator();
  if (ImGui::Selectable("Another model...")) picking_ = true;
  ImGui::EndCombo();
}

void SimpleView::draw_picker(const PanelContext& context, Panel& models) {
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({std::min(context.theme.px(520), viewport->WorkSize.x * 0.9f),
                            std::min(context.theme.px(560), viewport->WorkSize.y * 0.9f)},
                           ImGuiCond_Appearing);
  if (ImGui::Begin("Choose a model", &picking_, ImGuiWindowFlags_NoSavedSettings))
    models.draw(context);
  ImGui::End();
}

}  // namespace hearth
