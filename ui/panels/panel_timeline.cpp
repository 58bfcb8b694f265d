// Timeline: what every request did in every step.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ui/data/timeline_data.h"
#include "ui/data/timeline_window.h"
#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/draw/tiles.h"
#include "ui/draw/timeline_cells.h"
#include "ui/panel.h"
#include "ui/panels/scrub_bar.h"
#include "ui/panels/timeline_rows.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr PanelInfo kTimelineInfo{
    .name = "Timeline",
    .key = "timeline",
    .region = Region::kTop,
    .order = 0,
    .description =
        "What every request did in every step: one row per request, one column per step."};

class TimelinePanel : public Panel {
 public:
  TimelinePanel() : Panel(kTimelineInfo) {}

  void update(const PanelContext& context) override {
    data_.update(context.view);
    budget_ = context.view.limits.max_step_tokens;
    window_.update(data_.first_column(), data_.end_column());
    past_position_ = context.host.scrubber().active() ? context.host.scrubber().position() : 0;
  }

  void draw(const PanelContext& context) override {
    draw_controls(context);
    past_.draw(context.theme, context.host);
    draw_states_legend(context.theme);
    if (data_.first_column() == data_.end_column()) {
      ImGui::TextDisabled("No step has run yet.");
      return;
    }
    const Theme& theme = context.theme;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {ImGui::GetStyle().ItemSpacing.x, theme.px(4)});
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float spacing = ImGui::GetStyle().ItemSpacing.y;
    const float steps_line = small_text_size() + theme.px(2);
    left_ = plot_label_width();
    corner_ = ImGui::GetCursorScreenPos();
    const float wide = room.x - left_ - ImGui::GetStyle().ScrollbarSize;
    window_.set_width(static_cast<double>(std::max(wide, 1.0f)));

    float strip = std::clamp(room.y * 0.18f, 3.4f * small_text_size(), theme.px(96));
    if (room.y < theme.px(150)) strip = 0;
    const float rows = std::max(
        room.y - 2 * (strip > 0 ? strip + spacing : 0) - steps_line - spacing, theme.px(44));
    if (strip > 0) draw_tokens(context, {room.x, strip});
    // The padding row is below the requests.
    const float padding = theme.px(14);
    rows_.draw(context, data_, window_, {room.x, rows - padding - spacing}, left_);
    draw_padding_row(theme, {room.x, padding});
    if (strip > 0) draw_times(context, {room.x, strip});
    draw_step_numbers(theme, {room.x, steps_line});
    ImGui::PopStyleVar();
  }

  void report(ValueSink& values) const override {
    values.set("steps", static_cast<double>(data_.end_column()));
    values.set("rows", static_cast<double>(data_.rows()));
    values.set("follow", window_.following() ? "yes" : "no");
    values.set("zoom", window_.pixels_per_column());
    values.set("budget", budget_);
    values.set("step_ms", mean_step_seconds() * 1e3);
    values.set("past", static_cast<double>(past_position_));
    values.set("missed", static_cast<double>(data_.missed_steps()));
    for (const CellState state : {CellState::kPrefill, CellState::kDecode, CellState::kWaiting,
                                  CellState::kPreempted, CellState::kSwapped, CellState::kIdle})
      values.set(state_key(state), static_cast<double>(data_.count(state)));
    if (data_.first_column() == data_.end_column()) return;
    const TimelineColumn& last = data_.column(data_.end_column() - 1);
    values.set("step", static_cast<double>(last.step));
    values.set("tokens", last.tokens());
    values.set("padding", last.padding_tokens);
    values.set("plan_ms", last.plan_seconds * 1e3);
    values.set("gpu_ms", last.run_seconds * 1e3);
    values.set("wait_ms", last.wait_seconds * 1e3);
  }

 private:
  static const char* state_key(CellState state) {
    switch (state) {
      case CellState::kPrefill:
        return "prefill";
      case CellState::kDecode:
        return "decode";
      case CellState::kPreempted:
        return "preempted";
      case CellState::kSwapped:
        return "swapped";
      case CellState::kIdle:
        return "idle";
      default:
        return "waiting";
    }
  }

  void draw_controls(const PanelContext& context) {
    draw_headline(context.theme, format_value(mean_step_seconds(), Unit::kSeconds),
                  "per step, on average", "The mean of the steps that are shown.");
    ImGui::SameLine(0, context.theme.px(14));
    bool follow = window_.following();
    if (outlined_checkbox("Follow", &follow)) window_.follow(follow);
    ImGui::SetItemTooltip("On: show the newest steps. Off: stay at the current ones.");
    const auto button = [&](const char* label, const char* tooltip) {
      same_line_if_fits(button_width(label));
      const bool pressed = ImGui::Button(label);
      ImGui::SetItemTooltip("%s", tooltip);
      return pressed;
    };
    if (button("Scroll left", "Move back by half a window. You can also drag the plot."))
      window_.move(-window_.columns() / 2);
    if (button("Scroll right", "Move forward by half a window. You can also drag the plot."))
      window_.move(window_.columns() / 2);
    if (button("Zoom out", "Show more steps (Ctrl+mouse wheel).")) window_.zoom(1 / 1.5, 1);
    if (button("Zoom in", "Show fewer steps (Ctrl+mouse wheel).")) window_.zoom(1.5, 1);
    const SchedulerCounts& counts = context.view.counts;
    std::string now = fmt::format("{} running   {} waiting   {} swapped", counts.running,
                                  counts.waiting, counts.swapped);
    if (data_.missed_steps() > 0) now += fmt::format("   {} steps missed", data_.missed_steps());
    // Other panels show these counts too, so they get no line of their own.
    if (!same_line_if_fits(ImGui::CalcTextSize(now.c_str()).x, context.theme.px(16))) return;
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("%s", now.c_str());
  }

  // Of the visible steps; 0 if there are none.
  double mean_step_seconds() const {
    const uint64_t first = std::max(window_.first_visible(), data_.first_column());
    const uint64_t end = std::min(window_.end_visible(), data_.end_column());
    double sum = 0;
    for (uint64_t c = first; c < end; ++c) sum += data_.column(c).seconds();
    return end > first ? sum / static_cast<double>(end - first) : 0;
  }

  void draw_states_legend(const Theme& theme) {
    draw_legend(theme, timeline_legend(theme, data_.marks()));
  }

  PlotAxis x_axis() const {
    return {.min = window_.from(),
            .max = window_.from() + window_.columns(),
            .ticks = false,
            .labels = false};
  }
  // Calls `draw` with ranges of visible columns: single ones, or as many as share a pixel, of which
  // the mean is drawn.
  template <class Draw>
  void for_groups(Draw draw) const {
    const auto together =
        static_cast<uint64_t>(std::max(std::ceil(1 / window_.pixels_per_column()), 1.0));
    for (uint64_t c = window_.first_visible(); c < window_.end_visible(); c += together)
      draw(c, std::min(c + together, window_.end_visible()));
  }

  void draw_tokens(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    uint32_t highest = 1;
    for (uint64_t c = window_.first_visible(); c < window_.end_visible(); ++c)
      highest = std::max(highest, data_.column(c).tokens());
    // A token budget far above the steps' tokens would make the bars too small to see.
    const bool show_budget = budget_ <= 4 * highest;
    const double top =
        show_budget ? std::max(1.15 * budget_, 1.0 * highest) : axis_end(1.2 * highest, 4);
    size.x -= ImGui::GetStyle().ScrollbarSize;
    Plot plot(theme, "tokens per step",
              {.size = size,
               .x = x_axis(),
               .y = {.max = top, .unit = Unit::kPlain, .title = "tokens per step"},
               .left = left_});
    for_groups([&](uint64_t c, uint64_t end) {
      const auto columns = static_cast<double>(end - c);
      double prompts = 0, decodes = 0, paddings = 0;
      for (uint64_t i = c; i < end; ++i) {
        prompts += data_.column(i).prompt_tokens;
        decodes += data_.column(i).decode_tokens;
        paddings += data_.column(i).padding_tokens;
      }
      double bottom = 0;
      const auto part = [&](double tokens, PhaseColor color) {
        if (tokens == 0) return;
        plot.bar(static_cast<double>(c), static_cast<double>(end), bottom,
                 bottom + tokens / columns, theme.phase_color(color));
        bottom += tokens / columns;
      };
      part(prompts, PhaseColor::kPrefill);
      part(decodes, PhaseColor::kDecode);
      part(paddings, PhaseColor::kPadding);
    });
    if (show_budget) {
      plot.reference(budget_, theme.warning_color(),
                     fmt::format("token budget {}", budget_).c_str());
    } else {
      const std::string name = fmt::format("token budget {} (off scale)", budget_);
      draw_small_text(plot.canvas(),
                      {plot.bottom_right().x - small_text_extent(name.c_str()).x - theme.px(4),
                       plot.top_left().y - small_text_size() - theme.px(1)},
                      theme.warning_color(), name.c_str());
    }
    draw_missed_steps(theme, plot.canvas(), data_, window_, plot.top_left().x, plot.top_left().y,
                      plot.bottom_right().y);
    if (plot.hovered()) step_tooltip(window_.column_at(plot.mouse_x()));
    pan_and_zoom(window_, corner_.x + left_);
  }

  void draw_times(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    double longest = 1e-6;
    for (uint64_t c = window_.first_visible(); c < window_.end_visible(); ++c)
      longest = std::max({longest, data_.column(c).seconds(), data_.column(c).wait_seconds});
    size.x -= ImGui::GetStyle().ScrollbarSize;
    using Mark = LegendEntry::Mark;
    const LegendEntry entries[] = {
        {"step time: planning", theme.planning_time_color(), Mark::kSquare, 0},
        {"GPU", theme.gpu_time_color(), Mark::kSquare, 0},
        {"host waits for GPU", theme.text_color(), Mark::kLine, 0}};
    Plot plot(theme, "step time",
              {.size = size,
               .x = x_axis(),
               .y = {.max = 1.05 * longest, .unit = Unit::kSeconds},
               .left = left_,
               .legend = entries});
    for_groups([&](uint64_t c, uint64_t end) {
      const auto columns = static_cast<double>(end - c);
      double plan = 0, run = 0;
      for (uint64_t i = c; i < end; ++i) {
        plan += data_.column(i).plan_seconds;
        run += data_.column(i).run_seconds;
      }
      const auto x = static_cast<double>(c), to = static_cast<double>(end);
      plot.bar(x, to, 0, plan / columns, theme.planning_time_color());
      plot.bar(x, to, plan / columns, (plan + run) / columns, theme.gpu_time_color());
    });
    // Columns narrower than the line are merged into their mean.
    const auto together = static_cast<uint64_t>(std::ceil(3 / window_.pixels_per_column()));
    waits_.clear();
    for (uint64_t c = window_.first_visible(); c < window_.end_visible(); c += together) {
      const uint64_t end = std::min(c + together, window_.end_visible());
      double sum = 0;
      for (uint64_t i = c; i < end; ++i) sum += data_.column(i).wait_seconds;
      waits_.push_back({static_cast<double>(c), sum / static_cast<double>(end - c)});
    }
    if (!waits_.empty())
      waits_.push_back({static_cast<double>(window_.end_visible()), waits_.back().y});
    plot.steps(waits_, theme.text_color(), 1.5f);
    draw_missed_steps(theme, plot.canvas(), data_, window_, plot.top_left().x, plot.top_left().y,
                      plot.bottom_right().y);
    if (plot.hovered()) step_tooltip(window_.column_at(plot.mouse_x()));
    pan_and_zoom(window_, corner_.x + left_);
  }

  float x_of(double column) const { return window_.x_of(column, corner_.x + left_); }

  void draw_step_numbers(const Theme& theme, ImVec2 size) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImU32 color = faded(theme.text_color(), 0.75f);
    draw_small_text(draw, at, color, "step");
    const auto every = static_cast<uint64_t>(
        axis_end(static_cast<double>(theme.px(90)) / window_.pixels_per_column(), 1));
    for (uint64_t c = window_.first_visible(); c < window_.end_visible(); ++c) {
      const uint64_t step = data_.column(c).step;
      if (step % every != 0) continue;
      const float x = std::round(x_of(static_cast<double>(c)));
      const std::string label = std::to_string(step);
      if (x + theme.px(3) + small_text_extent(label.c_str()).x > at.x + size.x) break;
      draw.AddLine({x, at.y - theme.px(2)}, {x, at.y + theme.px(2)}, color);
      draw_small_text(draw, {x + theme.px(3), at.y}, color, label.c_str());
    }
    ImGui::Dummy(size);
  }

  void draw_padding_row(const Theme& theme, ImVec2 size) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton("timeline padding", size);
    const float right = at.x + size.x - ImGui::GetStyle().ScrollbarSize;
    const float bottom = at.y + size.y - theme.px(1), top = at.y + theme.px(2);
    const char* name = "padding";
    draw_small_text(draw,
                    {at.x + left_ - small_text_extent(name).x - theme.px(5),
                     at.y + (size.y - small_text_size()) / 2 - theme.px(1)},
                    faded(theme.text_color(), 0.75f), name);
    draw.AddLine({at.x + left_, bottom}, {right, bottom}, theme.faint_color());
    draw.PushClipRect({at.x + left_, at.y}, {right, at.y + size.y}, true);
    const ImU32 color = theme.phase_color(PhaseColor::kPadding);
    for_groups([&](uint64_t c, uint64_t end_column) {
      double share = 0;
      for (uint64_t i = c; i < end_column; ++i)
        share = std::max(share, data_.column(i).padding_share());
      if (share <= 0) return;
      const ImVec2 from(x_of(static_cast<double>(c)),
                        bottom - std::max(static_cast<float>(share) * (bottom - top), 1.0f));
      const ImVec2 to(std::max(x_of(static_cast<double>(end_column)) - 1, from.x + 1), bottom);
      draw.AddRectFilled(from, to, faded(color, 0.5f));
      draw_hatching(draw, from, to, color, theme.px(4));
    });
    draw.PopClipRect();
    if (ImGui::IsItemHovered() && ImGui::GetMousePos().x >= at.x + left_)
      step_tooltip(window_.column_at(window_.column_of(ImGui::GetMousePos().x, at.x + left_)));
    pan_and_zoom(window_, corner_.x + left_);
  }

  void step_tooltip(uint64_t c) {
    if (c >= data_.end_column() || ImGui::IsMouseDragging(ImGuiMouseButton_Left)) return;
    const TimelineColumn& column = data_.column(c);
    if (!ImGui::BeginTooltip()) return;
    ImGui::Text("Step %llu", static_cast<unsigned long long>(column.step));
    ImGui::TextDisabled("%u sequences, started at %s", column.members,
                        format_value(column.begin_seconds, Unit::kSeconds).c_str());
    if (ImGui::BeginTable("numbers", 2)) {
      const auto line = [](const char* name, const std::string& value) {
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(name);
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(value.c_str());
      };
      line("prefill", format_value(column.prompt_tokens, Unit::kTokens));
      line("decode", format_value(column.decode_tokens, Unit::kTokens));
      line("padding", fmt::format("{} ({})", format_value(column.padding_tokens, Unit::kTokens),
                                  format_value(column.padding_share(), Unit::kShare)));
      line("token budget", format_value(column.budget_tokens, Unit::kTokens));
      line("planning", format_value(column.plan_seconds, Unit::kSeconds));
      line("GPU", format_value(column.run_seconds, Unit::kSeconds));
      line("host waits for GPU", format_value(column.wait_seconds, Unit::kSeconds));
      if (column.missed_before > 0)
        line("missed before", fmt::format("{} steps", column.missed_before));
      ImGui::EndTable();
    }
    ImGui::EndTooltip();
  }

  TimelineData data_;
  TimelineWindow window_;
  uint32_t budget_ = 0;
  TimelineRows rows_;
  ScrubBar past_;
  uint64_t past_position_ = 0;  // 0: the present
  std::vector<PlotPoint> waits_;
  ImVec2 corner_{0, 0};
  float left_ = 0;
};

const PanelRegistration kTimelineRegistration([] { return std::make_unique<TimelinePanel>(); });

}  // namespace
}  // namespace hearth
