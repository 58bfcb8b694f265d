#include "ui/panels/load_controls.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

constexpr uint32_t kMaxLength = 1u << 17;
constexpr int kMaxBurst = 512;

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

}  // namespace

void LoadControls::update(const PanelContext& context) {
  read_settings(context.settings);
  const EngineHost& host = context.host;
  const Session* const session = host.session();
  LoadTarget target{.engine = context.host.engine(),
                    .tokenizer = session != nullptr ? session->tokenizer() : nullptr,
                    .generation = host.generation(),
                    .remote = context.view.connected ? context.host.remote_calls() : nullptr,
                    .remote_limits = context.view.limits,
                    .remote_vocabulary = context.view.vocabulary};
  // The past that may be on display has nothing to do with what the engine answers now.
  if (!host.scrubber().active()) target.shown = context.view.sequences;
  // A comparison pauses the engine; requests that pile up meanwhile would only be in the way.
  if (!host.comparing() || target.engine == nullptr) load_.update(target, ImGui::GetTime());
  if (!host.reserved_for_lesson() && host.is_demo() && host.generation() != demo_generation_) {
    demo_generation_ = host.generation();
    start_demo_load();
  }
}

// The demo starts with more load than the engine can serve, so that there is something to watch.
void LoadControls::start_demo_load() {
  load_.settings = {.rate = 9,
                    .prompt_min = 24,
                    .prompt_max = 260,
                    .generate_min = 24,
                    .generate_max = 240,
                    .shared_prefix = 48};
  load_.start();
}

void LoadControls::leave_to_lesson(const PanelContext& context) {
  demo_generation_ = context.host.generation();
  if (load_.playing_trace()) load_.stop_trace();
  if (load_.started() || load_.counts().unanswered > 0) load_.cancel_all();
}

void LoadControls::report(ValueSink& values) const {
  const LoadCounts& counts = load_.counts();
  values.set("load", load_.started() ? 1 : 0);
  values.set("sent", static_cast<double>(counts.sent));
  values.set("answered", static_cast<double>(counts.answered));
  values.set("refused", static_cast<double>(counts.refused));
  values.set("trace_requests", static_cast<double>(load_.trace_requests()));
  values.set("trace_submitted", static_cast<double>(load_.trace_submitted()));
  values.set("trace_failure", load_.trace_failure());
}

void LoadControls::draw_buttons(const Theme& theme) {
  const bool started = load_.started();
  const float width = std::max(button_width("Start load"), button_width("Stop load"));
  if (ImGui::Button(started ? "Stop load" : "Start load", {width, 0})) {
    if (started)
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

// Only what no other panel counts: those count all requests, whoever sent them.
void LoadControls::draw_counts(const Theme& theme) const {
  const LoadCounts& counts = load_.counts();
  const NamedNumber tiles[] = {
      {"sent", std::to_string(counts.sent),
       "Synthetic requests that the buttons above or a trace have sent. Requests of the chat and "
       "of\nother clients are not among them; the panel Requests counts all of them."},
      {"answered", std::to_string(counts.answered),
       "Synthetic requests of which the last token has arrived. Cancelled ones are not among "
       "them."},
      {"refused", std::to_string(counts.refused),
       "Synthetic requests that were sent and refused, because the queue was full or because they "
       "could\nnever run."},
  };
  draw_tiles(theme, tiles);
  if (!load_.refusal().empty()) warning_text(theme, load_.refusal());
}

void LoadControls::draw_settings(Settings& store, uint32_t context) {
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
  const uint32_t max = std::clamp(context, 2u, kMaxLength);
  changed |= length_range(
      "Prompt", settings.prompt_min, settings.prompt_max, max,
      "Prompt length in tokens, drawn evenly from this range and clipped to the context.");
  changed |= length_range("Answer", settings.generate_min, settings.generate_max, max,
                          "Number of tokens to generate, drawn evenly from this range.");
  const uint32_t none = 0;
  changed |= ImGui::SliderScalar("Shared prefix", ImGuiDataType_U32, &settings.shared_prefix, &none,
                                 &max, settings.shared_prefix == 0 ? "none" : "%u tokens",
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

void LoadControls::draw_trace(const PanelContext& context) {
  if (line_box("Trace file", trace_)) load_.play_trace(trace_, double{trace_speed_});
  ImGui::SetItemTooltip(
      "An Azure CSV or Mooncake JSONL file, or a synthetic trace such as\n"
      "synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=0,seed=1");
  ImGui::InputFloat("Speed", &trace_speed_, 0, 0, "%.1f x");
  if (ImGui::IsItemDeactivatedAfterEdit()) trace_speed_ = std::clamp(trace_speed_, 0.01f, 1000.0f);
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

void LoadControls::read_settings(const Settings& settings) {
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

void LoadControls::write_settings(Settings& settings) const {
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

}  // namespace hearth
