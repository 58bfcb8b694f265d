// Control: pause, single steps and slow motion; all policy switches and limits, which can be
// changed while the engine runs; and synthetic requests at a rate, in bursts or from a trace.
#include <algorithm>
#include <cfloat>
#include <deque>
#include <string>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "ui/data/control_data.h"
#include "ui/draw/tiles.h"
#include "ui/engine_control.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/chat_widgets.h"
#include "ui/panels/load_controls.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr float kControlLabelWidth = 118;  // right of a slider, at scale 1
constexpr float kLeastSliderWidth = 90;    // at scale 1
constexpr const char* kRate = "steps/s, last second";

// A button that is highlighted if it is the current choice.
bool choice_button(const Theme& theme, const char* label, bool chosen) {
  if (chosen) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme.on_accent_color());
    ImGui::PushStyleColor(ImGuiCol_Button, ImGui::GetStyleColorVec4(ImGuiCol_ButtonActive));
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, ImGui::GetStyleColorVec4(ImGuiCol_ButtonActive));
  }
  const bool pressed = ImGui::Button(label);
  if (chosen) ImGui::PopStyleColor(3);
  return pressed;
}

// The heading of a section, with a button at its right end.
bool heading_with_button(const char* title, const char* button) {
  ImGuiWindow& window = *ImGui::GetCurrentWindow();
  const float width = button_width(button), right = window.WorkRect.Max.x;
  // Lines end at the work rectangle.
  window.WorkRect.Max.x -= width + ImGui::GetStyle().ItemSpacing.x;
  ImGui::SeparatorText(title);
  window.WorkRect.Max.x = right;
  ImGui::SameLine(right - width - window.Pos.x);
  return ImGui::Button(button);
}

class ControlPanel : public Panel {
 public:
  ControlPanel()
      : Panel({.name = "Control",
               .key = "control",
               .region = Region::kSideTop,
               .order = 0,
               .description =
                   "Pause and slow motion, scheduling policy, limits, and synthetic requests."}) {}

  void update(const PanelContext& context) override {
    load_.update(context);
    if (context.host.reserved_for_lesson()) load_.leave_to_lesson(context);
    // Of the engine itself, even if the display shows the past.
    const EngineControl* const engine = context.host.control();
    policy_ = engine != nullptr ? engine->policy() : context.view.policy;
    limits_ = engine != nullptr ? engine->limits() : context.view.limits;
    paused_ = engine != nullptr && engine->paused();
    pace_ = context.view.pace;
    count_steps(context.view);
  }

  void draw(const PanelContext& context) override {
    EngineControl* const engine = context.host.control();
    why_not_ = engine == nullptr ? context.host.why_no_control() : nullptr;
    if (why_not_ != nullptr) faint_text(why_not_);
    if (engine != nullptr && !engine->failure().empty())
      warning_text(context.theme, engine->failure());
    const bool takes_requests = context.host.engine() != nullptr ||
                                (context.host.remote_calls() != nullptr && context.view.connected);
    ImGui::PushItemWidth(-context.theme.px(kControlLabelWidth));
    const auto enabled = [](bool when, auto draw) {
      ImGui::BeginDisabled(!when);
      draw();
      ImGui::EndDisabled();
    };
    // The most used controls come first; the rest can be collapsed.
    enabled(engine != nullptr, [&] { draw_run(context, engine); });
    enabled(takes_requests, [&] {
      ImGui::SeparatorText("Load");
      load_.draw_buttons(context.theme);
    });
    enabled(engine != nullptr, [&] { draw_policy(context, engine); });
    if (ImGui::CollapsingHeader("Switches"))
      enabled(engine != nullptr, [&] { draw_switches(engine); });
    if (ImGui::CollapsingHeader("Limits", ImGuiTreeNodeFlags_DefaultOpen))
      enabled(engine != nullptr, [&] { draw_limits(engine); });
    enabled(takes_requests, [&] {
      if (ImGui::CollapsingHeader("Load settings"))
        load_.draw_settings(context.settings, limits_.context);
      if (ImGui::CollapsingHeader("Trace")) load_.draw_trace(context);
    });
    ImGui::PopItemWidth();
  }

  void report(ValueSink& values) const override {
    values.set("policy", std::string(policy_name(policy_)));
    for (const SwitchRow& row : switch_rows(policy_))
      values.set(row.name, *switch_value(policy_, row.name));
    values.set("sequences", limits_.max_sequences);
    values.set("step_tokens", limits_.max_step_tokens);
    values.set("pool_blocks", limits_.pool_blocks);
    values.set("paused", paused_ ? 1 : 0);
    values.set("pace", pace_);
    values.set("steps_per_s", static_cast<double>(last_second_.size()));
    load_.report(values);
  }

 private:
  // Those that ended in the last second, on the engine's clock.
  void count_steps(const EngineView& view) {
    if (std::exchange(steps_of_, view.generation) != view.generation) last_second_.clear();
    for (const StepRecord& step : view.new_steps) last_second_.push_back(step.end_seconds);
    while (!last_second_.empty() && last_second_.front() < view.now - 1) last_second_.pop_front();
  }

  // A control that cannot be used says why.
  void tip(const std::string& text) const {
    ImGui::SetItemTooltip("%s", why_not_ != nullptr ? why_not_ : text.c_str());
  }

  void draw_run(const PanelContext& context, EngineControl* engine) {
    const Theme& theme = context.theme;
    // As wide for every number, so that the buttons beside it stay where they are.
    const float width =
        std::max(headline_width(theme, "paused", ""), headline_width(theme, "0000", kRate));
    const float start = ImGui::GetCursorPosX();
    draw_headline(theme, paused_ ? "paused" : std::to_string(last_second_.size()),
                  paused_ ? "" : kRate, "Steps that the engine ran in the last second.");
    ImGui::SameLine(start + width);
    const float pause = std::max(button_width("Pause"), button_width("Resume"));
    if (ImGui::Button(paused_ ? "Resume" : "Pause", {pause, 0})) context.host.pause(!paused_);
    tip(paused_ ? "Continue running steps (Ctrl+Space)."
                : "Run no further steps. Requests are still accepted (Ctrl+Space).");
    same_line_if_fits(button_width("Step once"));
    ImGui::BeginDisabled(!paused_);
    if (ImGui::Button("Step once") && engine != nullptr) engine->step_once();
    tip("Run a single step (Ctrl+Right). Available while the engine is paused.");
    ImGui::EndDisabled();
    same_line_if_fits(button_width("Reset numbers"));
    if (ImGui::Button("Reset numbers")) context.host.restart_numbers();
    tip("Percentiles, shares and averages start over, as they do with every new policy.");
    same_line_if_fits(checkbox_width("Slow motion"));
    bool slow = pace_ > 0;
    if (outlined_checkbox("Slow motion", &slow)) context.host.set_pace(slow ? last_pace_ : 0);
    tip("Limit the number of steps per second, so that each one can be seen.");
    if (slow) draw_speed(context);
  }

  // Beside "Slow motion" if there is room.
  void draw_speed(const PanelContext& context) {
    last_pace_ = pace_;
    auto slider = static_cast<float>(slider_from_pace(pace_));
    const std::string text = fmt::format("{:.1f} steps/s", pace_);
    same_line_if_fits(context.theme.px(kLeastSliderWidth));
    ImGui::SetNextItemWidth(-FLT_MIN);
    if (ImGui::SliderFloat("##slow motion", &slider, 0, 1, text.c_str(), ImGuiSliderFlags_NoInput))
      context.host.set_pace(pace_from_slider(double{slider}));
    tip("The maximum number of steps per second.");
  }

  static void set_policy(EngineControl* engine, const Policy& policy) {
    if (engine != nullptr) engine->set_policy(policy);
  }

  void draw_policy(const PanelContext& context, EngineControl* engine) {
    if (heading_with_button("Policy", "Compare..."))
      context.host.open_comparison({.policies = comparison_for(policy_)});
    tip("Run the same requests under two policies, one timeline above the other.");
    const std::string_view current = policy_name(policy_);
    bool first = true;
    for (const std::string_view name : policy_names()) {
      const std::string label(name);
      if (!std::exchange(first, false)) same_line_if_fits(button_width(label.c_str()));
      if (choice_button(context.theme, label.c_str(), name == current))
        set_policy(engine, *named_policy(name));
      tip(std::string(policy_description(name)));
    }
    faint_text(std::string(policy_description(current)));
  }

  void draw_switches(EngineControl* engine) {
    for (const SwitchRow& row : switch_rows(policy_)) {
      const std::string label(row.name);
      if (row.values.empty()) {
        uint32_t number = row.number;
        const uint32_t step = 1, fast_step = 16;
        ImGui::InputScalar(label.c_str(), ImGuiDataType_U32, &number, &step, &fast_step);
        if (number != row.number)
          set_policy(engine, with_switch(policy_, row.name, std::to_string(number)));
      } else {
        if (begin_combo(label, std::string(row.values[row.selected]))) {
          for (size_t i = 0; i < row.values.size(); ++i)
            if (ImGui::Selectable(std::string(row.values[i]).c_str(), i == row.selected))
              set_policy(engine, with_switch(policy_, row.name, row.values[i]));
          ImGui::EndCombo();
        }
      }
      tip(std::string(row.description));
    }
  }

  void draw_limits(EngineControl* engine) {
    const std::vector<LimitRow> rows =
        limit_rows(limits_, engine != nullptr ? engine->initial_limits() : limits_);
    for (size_t i = 0; i < rows.size(); ++i) {
      const LimitRow& row = rows[i];
      uint32_t value = row.value;
      // The engine may keep the pool larger than requested; the slider shows the actual size.
      if (ImGui::SliderScalar(std::string(row.name).c_str(), ImGuiDataType_U32, &value, &row.min,
                              &row.max, "%u", ImGuiSliderFlags_AlwaysClamp) &&
          engine != nullptr) {
        const auto kind = static_cast<LimitKind>(i);
        const SchedulerLimits wanted = with_limit(limits_, kind, value);
        engine->set_limits(wanted.max_sequences, wanted.max_step_tokens,
                           kind == LimitKind::kPoolBlocks ? wanted.pool_blocks : 0);
      }
      tip(fmt::format("{}.\nThe maximum is {}.", row.description, row.max));
    }
  }

  LoadControls load_;
  const char* why_not_ = nullptr;  // the engine cannot be controlled
  Policy policy_;
  SchedulerLimits limits_;
  std::deque<double> last_second_;  // when its steps ended
  uint64_t steps_of_ = 0;           // the generation that they belong to
  bool paused_ = false;
  double pace_ = 0, last_pace_ = 4;
};

const PanelRegistration kControlRegistration([] { return std::make_unique<ControlPanel>(); });

}  // namespace
}  // namespace hearth
