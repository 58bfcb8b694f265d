#include "ui/panels/scrub_bar.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/axis.h"
#include "ui/draw/tiles.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {

void ScrubBar::draw(const Theme& theme, EngineHost& host) {
  Scrubber& scrubber = host.scrubber();
  ImGui::BeginDisabled(scrubber.history.empty());
  if (ImGui::Button("Step back##past")) scrubber.step(-1);
  ImGui::SetItemTooltip(
      "Show all panels as they were one step earlier (Ctrl+Left). The engine goes on meanwhile,\n"
      "unless it is paused.");
  ImGui::SameLine();
  ImGui::BeginDisabled(!scrubber.active());
  if (ImGui::Button("Step forward##past")) scrubber.step(1);
  ImGui::SetItemTooltip("One step later (Ctrl+Right).");
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (ImGui::Button(scrubber.playing() ? "Stop##past" : "Play##past"))
    scrubber.play(!scrubber.playing());
  ImGui::SetItemTooltip("Play the recorded steps at the speed at which they ran.");
  if (!host.is_recording()) {
    ImGui::SameLine();
    ImGui::BeginDisabled(!scrubber.active());
    if (ImGui::Button("Now")) host.leave_past();
    ImGui::SetItemTooltip("Back to what the engine does now.");
    ImGui::EndDisabled();
  }
  ImGui::SameLine();
  const float save =
      host.is_recording() ? 0 : button_width("Save...") + ImGui::GetStyle().ItemSpacing.x;
  ImGui::SetNextItemWidth(std::max(ImGui::GetContentRegionAvail().x - save, theme.px(80)));
  draw_slider(scrubber);
  if (!host.is_recording()) {
    ImGui::SameLine();
    if (ImGui::Button("Save...")) {
      saved_.clear();
      ImGui::OpenPopup("recording");
    }
    ImGui::SetItemTooltip("Save the last steps into a file that `hearth dash --recording` opens.");
    draw_saving(host);
  }
  ImGui::EndDisabled();
}

void ScrubBar::draw_slider(Scrubber& scrubber) {
  const ViewHistory& history = scrubber.history;
  if (history.empty()) {
    ImGui::TextDisabled("no steps yet");
    return;
  }
  uint64_t position = scrubber.active() ? scrubber.position() : history.end();
  const uint64_t first = history.first() + 1, last = history.end();
  const StepRecord& step = history.step(position - 1);
  std::string text = fmt::format("step {}", step.step);
  if (const double ago = history.step(last - 1).end_seconds - step.end_seconds; ago > 0)
    text += fmt::format(", {} before the newest", format_value(ago, Unit::kSeconds));
  else
    text += fmt::format(", the newest of {}", last - first + 1);
  if (!ImGui::SliderScalar("##past", ImGuiDataType_U64, &position, &first, &last, text.c_str(),
                           ImGuiSliderFlags_NoInput))
    return;
  scrubber.play(false);
  scrubber.seek(position);
}

void ScrubBar::draw_saving(EngineHost& host) {
  if (!ImGui::BeginPopup("recording")) return;
  ImGui::TextUnformatted("The last steps as a Perfetto trace that this dashboard can open again.");
  ImGui::SetNextItemWidth(24 * ImGui::GetFontSize());
  bool save = line_box("##recording file", path_);
  ImGui::SameLine();
  save |= ImGui::Button("Save recording");
  if (save) saved_ = host.save_recording(path_);
  if (!saved_.empty()) ImGui::TextWrapped("%s", saved_.c_str());
  ImGui::EndPopup();
}

}  // namespace hearth
