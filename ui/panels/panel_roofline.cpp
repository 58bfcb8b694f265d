// Roofline: the speed of each part of a step compared with the device's measured ceilings. A dot on
// the slope is limited by memory bandwidth; a dot on the flat part, by arithmetic.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/axis.h"
#include "ui/data/roofline_plot.h"
#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/chat_widgets.h"
#include "ui/theme.h"

namespace hearth {
namespace {

// The ceilings use the first two series colours; steps use the following ones.
constexpr int kFirstStepColor = 2;
constexpr float kRooflineLabelWidth = 98;  // left of the plot, at scale 1
constexpr float kMinHeightForTable = 320;

class RooflinePanel : public Panel {
 public:
  RooflinePanel()
      : Panel({.name = "Roofline",
               .key = "roofline",
               .region = Region::kSideBottom,
               .order = 1,
               .description = "The speed of each part of a step, compared with the device's "
                              "measured ceilings."}) {}

  void update(const PanelContext& context) override {
    measuring_ = context.host.measuring();
    const RooflineData& data = context.host.roofline();
    failure_ = data.failure;
    if (data == data_) return;
    data_ = data;
    plot_ = make_roofline_plot(data_);
  }

  void draw(const PanelContext& context) override {
    const bool can = context.host.session() != nullptr;
    ImGui::BeginDisabled(!can || context.host.loading().active);
    if (ImGui::Button("Measure")) context.host.measure_roofline();
    ImGui::EndDisabled();
    ImGui::SetItemTooltip(
        "Measure for a few seconds. This stops the engine and ends its requests.");
    if (measuring_) {
      ImGui::SameLine();
      ImGui::TextDisabled("measuring...");
    }
    if (!failure_.empty()) warning_text(context.theme, failure_);
    if (data_.empty()) {
      faint_text(
          can ? "Nothing is measured yet. Measure times a prefill step and decode steps, and "
                "the device's memory bandwidth and arithmetic."
              : "The roofline needs a model on a device of this machine. Open one under Models.");
      return;
    }
    draw_roof_tiles(context.theme);
    draw_plot(context.theme);
    draw_table();
  }

  void report(ValueSink& values) const override {
    values.set("measuring", measuring_ ? 1 : 0);
    values.set("dots", static_cast<double>(data_.dots.size()));
    values.set("marks", static_cast<double>(plot_.marks.size()));
    values.set("steps", static_cast<double>(plot_.steps.size()));
    values.set("read_bytes_per_s", data_.read_bytes_per_s);
    values.set("flops_per_s", std::max(data_.flops_per_s, data_.matrix_flops_per_s));
    values.set("failure", failure_);
  }

 private:
  ImU32 step_color(const Theme& theme, size_t step) const {
    return theme.series_color(kFirstStepColor + static_cast<int>(step));
  }

  void draw_roof_tiles(const Theme& theme) const {
    std::vector<NamedNumber> tiles{
        {"memory", format_value(data_.read_bytes_per_s, Unit::kBytesPerSecond),
         "The measured memory bandwidth, reading."},
        {"vector units", format_value(data_.flops_per_s, Unit::kFlopsPerSecond),
         "The measured peak of f32 multiply-adds outside the matrix units."}};
    if (data_.matrix_flops_per_s > 0)
      tiles.push_back({"matrix units",
                       format_value(data_.matrix_flops_per_s, Unit::kFlopsPerSecond),
                       "The measured peak of f16 products with f32 sums in the matrix units."});
    draw_tiles(theme, tiles);
  }

  void draw_plot(const Theme& theme) {
    std::vector<LegendEntry> legend;
    for (size_t i = 0; i < plot_.roofs.size(); ++i)
      legend.push_back({plot_.roofs[i].name.c_str(), theme.series_color(static_cast<int>(i)),
                        LegendEntry::Mark::kLine});
    for (size_t i = 0; i < plot_.steps.size(); ++i)
      legend.push_back({plot_.steps[i].c_str(), step_color(theme, i), LegendEntry::Mark::kDot});
    draw_legend(theme, legend);
    const ImVec2 room = ImGui::GetContentRegionAvail();
    // The table below needs space for a few rows.
    const bool table = room.y > theme.px(kMinHeightForTable);
    const float height = std::max(theme.px(100), table ? room.y * 0.6f : room.y);
    Plot plot(theme, "##roofline",
              {.size = {room.x, height},
               .x = {.min = plot_.x_min,
                     .max = plot_.x_max,
                     .logarithmic = true,
                     .unit = Unit::kFlopsPerByte},
               .y = {.min = plot_.y_min,
                     .max = plot_.y_max,
                     .logarithmic = true,
                     .unit = Unit::kFlopsPerSecond},
               .left = theme.px(kRooflineLabelWidth)});
    for (size_t i = 0; i < plot_.roofs.size(); ++i) {
      std::vector<PlotPoint> points;
      for (const RooflinePlot::Point& at : plot_.roofs[i].points) points.push_back({at.x, at.y});
      plot.line(points, theme.series_color(static_cast<int>(i)), theme.px(2));
    }
    const RooflinePlot::Mark* hovered = nullptr;
    for (const RooflinePlot::Mark& mark : plot_.marks) {
      // A dot's area is its part's fraction of the step's time.
      const auto radius =
          theme.px(3 + 7 * static_cast<float>(std::sqrt(std::clamp(mark.time_share, 0.0, 1.0))));
      if (plot.dot({mark.at.x, mark.at.y}, radius, step_color(theme, mark.step))) hovered = &mark;
    }
    hovered_ = hovered != nullptr ? static_cast<int>(hovered->dot) : -1;
    if (hovered != nullptr) show_tooltip(data_.dots[hovered->dot], hovered->time_share);
  }

  static void show_tooltip(const RooflineDot& dot, double time_share) {
    std::string text = fmt::format("{} ({})\n{}\n{} calls, {}, {:.0f} % of the step", dot.part,
                                   dot.step, dot.kernels, dot.calls,
                                   format_value(dot.seconds, Unit::kSeconds), 100 * time_share);
    text += fmt::format("\n{}, {}, {}", format_value(dot.bytes_per_s(), Unit::kBytesPerSecond),
                        format_value(dot.flops_per_s(), Unit::kFlopsPerSecond),
                        format_value(dot.intensity(), Unit::kFlopsPerByte));
    text += fmt::format("\n{:.0f} % of its ceiling", 100 * dot.share);
    ImGui::SetTooltip("%s", text.c_str());
  }

  void draw_table() const {
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY |
                                       ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit |
                                       ImGuiTableFlags_BordersInnerV;
    if (ImGui::GetContentRegionAvail().y < 3 * ImGui::GetTextLineHeightWithSpacing()) return;
    if (!ImGui::BeginTable("##parts", 6, kFlags)) return;
    ImGui::TableSetupScrollFreeze(0, 1);
    for (const char* name : {"Part", "Step", "Time", "Bytes/s", "FLOP/s", "Of ceiling"})
      ImGui::TableSetupColumn(name);
    ImGui::TableHeadersRow();
    for (size_t i = 0; i < data_.dots.size(); ++i) {
      const RooflineDot& dot = data_.dots[i];
      ImGui::TableNextRow();
      if (hovered_ == static_cast<int>(i))
        ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0,
                               ImGui::GetColorU32(ImGuiCol_HeaderHovered));
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(dot.part.c_str());
      ImGui::SetItemTooltip("%s", dot.kernels.c_str());
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(dot.step.c_str());
      number_cell(format_value(dot.seconds, Unit::kSeconds));
      number_cell(dot.bytes > 0 ? format_value(dot.bytes_per_s(), Unit::kBytesPerSecond) : "-");
      number_cell(dot.flops > 0 ? format_value(dot.flops_per_s(), Unit::kFlopsPerSecond) : "-");
      number_cell(dot.share > 0 ? fmt::format("{:.0f} %", 100 * dot.share) : "-");
    }
    ImGui::EndTable();
  }

  static void number_cell(const std::string& text) {
    ImGui::TableNextColumn();
    const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
    if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
    ImGui::TextUnformatted(text.c_str());
  }

  RooflineData data_;
  RooflinePlot plot_;
  std::string failure_;
  bool measuring_ = false;
  int hovered_ = -1;  // index of the dot under the mouse; -1: none
};

const PanelRegistration kRooflineRegistration([] { return std::make_unique<RooflinePanel>(); });

}  // namespace
}  // namespace hearth
