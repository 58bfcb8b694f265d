// Control: pause, single steps and slow motion; all policy switches and limits, which can be
// changed while the engine runs; and synthetic requests at a rate, in bursts or from a trace.
#include <algorithm>
#include <deque>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/control_data.h"
#include "ui/data/load_generator.h"
#include "ui/data/settings.h"
#include "ui/draw/tiles.h"
#include "ui/engine_control.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/chat_widgets.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr float kControlLabelWidth = 118;  // right of a slider, at scale 1
constexpr uint32_t kMaxLength = 1u << 17;
constexpr int kMaxBurst = 512;

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

// A button, on the same line if it fits.
bool next_button(const char* label) {
  same_line_if_fits(button_width(label));
  return ImGui::Button(label);
}

bool length_range(const char* label, uint32_t& low, uint32_t& high, uint32_t max,
                  const char* tooltip) {
  int from = static_cast<int>(low), to = static_cast<int>(high);
  const bool changed = ImGui::DragIntRange2(label, &from, &to, 1, 1, static_cast<int>(max), "%d",
                                            "to %d", ImGuiSliderFlags_AlwaysClamp);
  ImGui::SetItemTooltip("%s", tooltip);
  low = static_cast<uint32_t>(std::max(from, 1));
  high = static_cast<uint32_t>(std::max(to, from));
  return changed;
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
    read_settings(context.settings);
    const Session* const session = context.host.session();
    // A comparison pauses the engine; requests that pile up meanwhile would only be in the way.
    if (!context.host.comparing() || context.host.engine() == nullptr)
      load_.update({.engine = context.host.engine(),
                    .tokenizer = session != nullptr ? session->tokenizer() : nullptr,
                    .generation = context.host.generation(),
                    .remote = context.view.connected ? context.host.remote_calls() : nullptr,
                    .remote_limits = context.view.limits,
                    .remote_vocabulary = context.view.vocabulary},
                   ImGui::GetTime());
    if (context.host.reserved_for_lesson())
      leave_to_lesson(context.host);
    else if (context.host.is_demo() && context.host.generation() != demo_generation_)
      start_demo_load(context.host);
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
    enabled(takes_requests, [&] { draw_load(context.theme); });
    enabled(engine != nullptr, [&] { draw_policy(context, engine); });
    if (ImGui::CollapsingHeader("Switches"))
      enabled(engine != nullptr, [&] { draw_switches(engine); });
    if (ImGui::CollapsingHeader("Limits", ImGuiTreeNodeFlags_DefaultOpen))
      enabled(engine != nullptr, [&] { draw_limits(engine); });
    enabled(takes_requests, [&] {
      if (ImGui::CollapsingHeader("Load settings")) draw_load_settings(context.settings);
      if (ImGui::CollapsingHeader("Trace")) draw_trace(context);
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
    const LoadCounts& counts = load_.counts();
    values.set("load", load_.started() ? 1 : 0);
    values.set("submitted", static_cast<double>(counts.submitted));
    values.set("running", static_cast<double>(counts.running));
    values.set("ended", static_cast<double>(counts.ended));
    values.set("refused", static_cast<double>(counts.refused));
    values.set("trace_requests", static_cast<double>(load_.trace_requests()));
    values.set("trace_submitted", static_cast<double>(load_.trace_submitted()));
    values.set("trace_failure", load_.trace_failure());
  }

 private:
  // The demo starts with more load than the engine can serve, so that there is something to watch.
  void start_demo_load(const EngineHost& host) {
    demo_generation_ = host.generation();
    load_.settings = {.rate = 9,
                      .prompt_min = 24,
                      .prompt_max = 260,
                      .generate_min = 24,
                      .generate_max = 240,
                      .shared_prefix = 48};
    load_.start();
  }

  // A lesson measures the engine: nothing else may run on it.
  void leave_to_lesson(const EngineHost& host) {
    demo_generation_ = host.generation();
    if (load_.playing_trace()) load_.stop_trace();
    if (load_.started() || load_.counts().running > 0) load_.cancel_all();
  }

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
    draw_headline(context.theme, paused_ ? "paused" : std::to_string(last_second_.size()),
                  paused_ ? "" : "steps/s", "Steps that the engine ran in the last second.");
    if (ImGui::Button(paused_ ? "Resume" : "Pause")) context.host.pause(!paused_);
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
    if (ImGui::Checkbox("Slow motion", &slow)) context.host.set_pace(slow ? last_pace_ : 0);
    tip("Limit the number of steps per second, so that each one can be seen.");
    if (!slow) return;
    last_pace_ = pace_;
    auto slider = static_cast<float>(slider_from_pace(pace_));
    const std::string text = fmt::format("{:.1f} steps/s", pace_);
    if (ImGui::SliderFloat("Speed##slow motion", &slider, 0, 1, text.c_str(),
                           ImGuiSliderFlags_NoInput))
      context.host.set_pace(pace_from_slider(double{slider}));
    tip("The maximum number of steps per second.");
  }

  static void set_policy(EngineControl* engine, const Policy& policy) {
    if (engine != nullptr) engine->set_policy(policy);
  }

  void draw_policy(const PanelContext& context, EngineControl* engine) {
    ImGui::SeparatorText("Policy");
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
    if (ImGui::Button("Compare..."))
      context.host.open_comparison({.policies = comparison_for(policy_)});
    tip("Run the same requests under two policies, one timeline above the other.");
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

  void draw_load(const Theme& theme) {
    ImGui::SeparatorText("Load");
    if (ImGui::Button(load_.started() ? "Stop load" : "Start load")) {
      if (load_.started())
        load_.stop();
      else
        load_.start();
    }
    ImGui::SetItemTooltip("Submit %.1f requests per second until stopped. See Load settings.",
                          load_.settings.rate);
    if (next_button("Burst")) load_.burst(static_cast<uint32_t>(burst_));
    ImGui::SetItemTooltip("Submit %d requests at once.", burst_);
    if (next_button("Cancel all")) load_.cancel_all();
    ImGui::SetItemTooltip("Cancel all synthetic requests and stop the load.");
    draw_counts(theme);
  }

  void draw_load_settings(Settings& store) {
    LoadSettings& settings = load_.settings;
    bool changed = false;
    auto rate = static_cast<float>(settings.rate);
    if (ImGui::SliderFloat("Rate", &rate, 0, 50, "%.1f requests/s",
                           ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp)) {
      settings.rate = double{rate};
      changed = true;
    }
    ImGui::SetItemTooltip(
        "The average arrival rate. Arrivals are independent of each other (Poisson).");
    const uint32_t max = std::clamp(limits_.context, 2u, kMaxLength);
    changed |= length_range(
        "Prompt", settings.prompt_min, settings.prompt_max, max,
        "Prompt length in tokens, drawn evenly from this range and clipped to the context.");
    changed |= length_range("Answer", settings.generate_min, settings.generate_max, max,
                            "Number of tokens to generate, drawn evenly from this range.");
    const uint32_t none = 0;
    changed |= ImGui::SliderScalar("Shared prefix", ImGuiDataType_U32, &settings.shared_prefix,
                                   &none, &max, settings.shared_prefix == 0 ? "none" : "%u tokens",
                                   ImGuiSliderFlags_AlwaysClamp);
    ImGui::SetItemTooltip("Tokens at the start of every prompt, the same in all of them.");
    const uint32_t one = 1, most_beams = kMaxBeams;
    changed |= ImGui::SliderScalar("Beams", ImGuiDataType_U32, &settings.beams, &one, &most_beams,
                                   settings.beams == 1 ? "no beam search" : "%u",
                                   ImGuiSliderFlags_AlwaysClamp);
    ImGui::SetItemTooltip(
        "More than one: each request is a beam search. The panel KV blocks shows its beams with\n"
        "\"Sharing as a tree\".");
    if (ImGui::InputInt("Burst size", &burst_, 1, 8)) {
      burst_ = std::clamp(burst_, 1, kMaxBurst);
      changed = true;
    }
    ImGui::SetItemTooltip("The number of requests in a burst.");
    if (changed) write_settings(store);
  }

  void draw_counts(const Theme& theme) const {
    const LoadCounts& counts = load_.counts();
    const NamedNumber tiles[] = {
        {"in flight", std::to_string(counts.running),
         "Synthetic requests that are running or in the queue."},
        {"ended", std::to_string(counts.ended),
         "Synthetic requests that generated all their tokens."},
        {"refused", std::to_string(counts.refused),
         "Synthetic requests refused because the queue was full or they could never run."},
    };
    draw_tiles(theme, tiles);
    if (!load_.refusal().empty()) warning_text(theme, load_.refusal());
  }

  void draw_trace(const PanelContext& context) {
    if (line_box("Trace file", trace_)) load_.play_trace(trace_, double{trace_speed_});
    ImGui::SetItemTooltip(
        "An Azure CSV or Mooncake JSONL file, or a synthetic trace such as\n"
        "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=0,seed=1");
    ImGui::InputFloat("Speed", &trace_speed_, 0, 0, "%.1f x");
    if (ImGui::IsItemDeactivatedAfterEdit())
      trace_speed_ = std::clamp(trace_speed_, 0.01f, 1000.0f);
    ImGui::SetItemTooltip("Play arrivals this many times as fast as recorded.");
    if (load_.playing_trace() || load_.reading_trace()) {
      if (ImGui::Button("Stop trace")) load_.stop_trace();
    } else if (ImGui::Button("Play trace")) {
      load_.play_trace(trace_, double{trace_speed_});
      context.settings.set("control.trace", trace_);
    }
    if (load_.reading_trace()) {
      ImGui::SameLine();
      ImGui::TextDisabled("reading...");
    } else if (load_.trace_requests() > 0) {
      ImGui::SameLine();
      ImGui::Text("%zu of %zu requests", load_.trace_submitted(), load_.trace_requests());
    }
    if (!load_.trace_failure().empty()) warning_text(context.theme, load_.trace_failure());
  }

  void read_settings(const Settings& settings) {
    if (std::exchange(settings_read_, true)) return;
    LoadSettings& load = load_.settings;
    load.rate = std::clamp(settings.get("control.rate", load.rate), 0.0, 1000.0);
    const auto length = [&](const char* key, uint32_t& value, uint32_t min) {
      value = std::clamp(settings.get(key, value), min, kMaxLength);
    };
    length("control.prompt_min", load.prompt_min, 1);
    length("control.prompt_max", load.prompt_max, load.prompt_min);
    length("control.generate_min", load.generate_min, 1);
    length("control.generate_max", load.generate_max, load.generate_min);
    length("control.shared_prefix", load.shared_prefix, 0);
    load.beams = std::clamp(settings.get("control.beams", load.beams), 1u, kMaxBeams);
    burst_ = std::clamp(settings.get("control.burst", burst_), 1, kMaxBurst);
    trace_ = settings.get("control.trace", trace_);
  }
  void write_settings(Settings& settings) const {
    const LoadSettings& load = load_.settings;
    settings.set("control.rate", load.rate);
    settings.set("control.prompt_min", load.prompt_min);
    settings.set("control.prompt_max", load.prompt_max);
    settings.set("control.generate_min", load.generate_min);
    settings.set("control.generate_max", load.generate_max);
    settings.set("control.shared_prefix", load.shared_prefix);
    settings.set("control.beams", load.beams);
    settings.set("control.burst", burst_);
  }

  LoadGenerator load_;
  const char* why_not_ = nullptr;  // the engine cannot be controlled
  uint64_t demo_generation_ = 0;   // the engine for which the demo's load was started
  Policy policy_;
  SchedulerLimits limits_;
  std::deque<double> last_second_;  // when its steps ended
  uint64_t steps_of_ = 0;           // the generation that they belong to
  bool paused_ = false, settings_read_ = false;
  double pace_ = 0, last_pace_ = 4;
  int burst_ = 8;
  std::string trace_ = "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,seed=1";
  float trace_speed_ = 1;
};

const PanelRegistration kControlRegistration([] { return std::make_unique<ControlPanel>(); });

}  // namespace
}  // namespace hearth
