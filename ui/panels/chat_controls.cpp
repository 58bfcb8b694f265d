#include "ui/panels/chat_controls.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/draw/tiles.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

constexpr float kChatControlsLabelWidth = 138;  // right of a slider, at scale 1
constexpr float kNearlyFull = 0.9f;

bool number(const char* label, float& value, float min, float max, const char* format,
            const char* tooltip) {
  const bool changed =
      ImGui::SliderFloat(label, &value, min, max, format, ImGuiSliderFlags_AlwaysClamp);
  ImGui::SetItemTooltip("%s", tooltip);
  return changed;
}

bool whole_number(const char* label, std::uint32_t& value, std::uint32_t max, const char* zero_text,
                  const char* tooltip) {
  const std::uint32_t min = 0;
  const bool changed =
      ImGui::SliderScalar(label, ImGuiDataType_U32, &value, &min, &max,
                          value == 0 ? zero_text : "%u", ImGuiSliderFlags_AlwaysClamp);
  ImGui::SetItemTooltip("%s", tooltip);
  return changed;
}

}  // namespace

bool draw_system_prompt(Chat& chat, const Theme& theme) {
  if (!ImGui::CollapsingHeader("System prompt")) return false;
  const bool changed = text_box("##system prompt", chat.system,
                                {-FLT_MIN, 3 * ImGui::GetTextLineHeight() + theme.px(8)});
  ImGui::SetItemTooltip("Instructions the model reads before the conversation.");
  return changed;
}

bool draw_sampling(ChatSampling& sampling, const SamplingOptions& defaults, std::uint32_t context,
                   const Theme& theme) {
  if (!ImGui::CollapsingHeader("Sampling")) return false;
  use_defaults(sampling, defaults);
  SamplingOptions& options = sampling.options;
  ImGui::PushItemWidth(-theme.px(kChatControlsLabelWidth));
  bool changed = false;
  changed |=
      number("Temperature", options.temperature, 0, 2, options.temperature == 0 ? "greedy" : "%.2f",
             "Higher values give more varied answers; 0 always takes the most likely token.");
  changed |= whole_number("Top-k", options.top_k, 200, "all",
                          "Draw only from the k most likely tokens; 0 means all.");
  changed |= number("Top-p", options.top_p, 0.01f, 1, options.top_p == 1 ? "all" : "%.2f",
                    "Draw only from the most likely tokens that together reach this probability.");
  changed |= number("Min-p", options.min_p, 0, 1, options.min_p == 0 ? "all" : "%.2f",
                    "Drop tokens less likely than this times the most likely one.");
  changed |= number("Repeat penalty", options.repetition_penalty, 1, 2,
                    options.repetition_penalty == 1 ? "none" : "%.2f",
                    "Make tokens that already occurred less likely, by this factor.");
  sampling.custom |= changed;
  changed |= whole_number("Max tokens", sampling.max_tokens, std::max(context, 64u), "no limit",
                          "The maximum length of an answer, in tokens.");
  changed |= ImGui::InputScalar("Seed", ImGuiDataType_U64, &options.seed);
  ImGui::SetItemTooltip("The same seed, conversation and settings give the same answer.");
  changed |= outlined_checkbox("New seed for each answer", &sampling.new_seed);
  ImGui::PopItemWidth();
  ImGui::SameLine();
  if (ImGui::SmallButton("Defaults")) {
    sampling = {};
    use_defaults(sampling, defaults);
    changed = true;
  }
  ImGui::SetItemTooltip("Use the model's own sampling settings.");
  return changed;
}

bool draw_presets(Chat& chat, ChatPresets& presets, const std::string& model, std::string& name,
                  bool& saved, const Theme& theme) {
  if (!ImGui::CollapsingHeader("Presets")) return false;
  bool changed = false;
  std::string removed;
  for (const std::string& preset : presets.names(model)) {
    ImGui::PushID(preset.c_str());
    if (ImGui::SmallButton(preset.c_str())) {
      use_preset(*presets.find(model, preset), chat);
      changed = true;
    }
    ImGui::SetItemTooltip("Use this system prompt and sampling in the conversation.");
    ImGui::SameLine(0, theme.px(2));
    if (ImGui::SmallButton("x")) removed = preset;
    ImGui::SetItemTooltip("Delete this preset.");
    ImGui::SameLine();
    ImGui::PopID();
  }
  ImGui::NewLine();
  if (!removed.empty()) presets.remove(model, removed);
  ImGui::SetNextItemWidth(theme.px(140));
  bool save = line_box("##preset name", name);
  ImGui::SameLine();
  ImGui::BeginDisabled(name.empty());
  save |= ImGui::Button("Save preset");
  ImGui::EndDisabled();
  ImGui::SetItemTooltip("Save the system prompt and the sampling under this name, for this model.");
  if (save && !name.empty()) {
    presets.save(model, name, chat);
    name.clear();
  } else {
    save = false;
  }
  saved = save || !removed.empty();
  return changed;
}

ContextUse context_use(const Chat& chat, std::uint32_t context) {
  if (chat.exchanges.empty()) return {.context = context};
  const ChatReply& reply = chat.exchanges.back().reply;
  return {.used = reply.context_tokens(), .context = context, .left_out = reply.left_out};
}

void draw_context_gauge(const ContextUse& use, float width, const Theme& theme) {
  const float height = ImGui::GetTextLineHeight();
  const float share =
      use.context == 0
          ? 0
          : std::min(1.0f, static_cast<float>(use.used) / static_cast<float>(use.context));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const std::string text = use.context == 0 ? fmt::format("{} tokens", use.used)
                                            : fmt::format("{} of {} tokens", use.used, use.context);
  const float label = ImGui::CalcTextSize(text.c_str()).x;
  const float bar = std::max(theme.px(24), width - label - theme.px(8));
  ImGui::Dummy({bar + theme.px(8) + label, height});
  ImGui::SetItemTooltip(
      "How much of the model's context this conversation uses.%s",
      use.left_out > 0
          ? fmt::format("\nIt is full: the oldest {} messages were dropped.", use.left_out).c_str()
          : "");
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float top = corner.y + height * 0.35f, bottom = corner.y + height * 0.7f;
  const bool full = share > kNearlyFull || use.left_out > 0;
  draw.AddRectFilled({corner.x, top}, {corner.x + bar, bottom}, style_color(ImGuiCol_FrameBg),
                     theme.px(3));
  if (share > 0)
    draw.AddRectFilled({corner.x, top}, {corner.x + std::max(theme.px(3), bar * share), bottom},
                       full ? theme.warning_color() : style_color(ImGuiCol_SliderGrab),
                       theme.px(3));
  draw.AddText({corner.x + bar + theme.px(8), corner.y},
               full ? theme.warning_color() : style_color(ImGuiCol_TextDisabled), text.c_str());
}

}  // namespace hearth
