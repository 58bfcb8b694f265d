// Occupancy: how well the engine is utilised, now and over time.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ui/data/axis.h"
#include "ui/data/number_interval.h"
#include "ui/data/occupancy_data.h"
#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/draw/tiles.h"
#include "ui/panel.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr PanelInfo kOccupancyInfo{
    .name = "Occupancy",
    .key = "occupancy",
    .region = Region::kBottomRight,
    .order = 0,
    .description = "Batch size, running and waiting requests, tokens/s, GPU time and memory."};

class OccupancyPanel : public Panel {
 public:
  OccupancyPanel() : Panel(kOccupancyInfo) {}

  void update(const PanelContext& context) override { data_.update(context.view); }

  void draw(const PanelContext& context) override {
    const Theme& theme = context.theme;
    draw_numbers(theme);
    bool all = window_ == Window::kAll;
    const std::string label =
        interval_label(all ? 0 : OccupancyData::kFineSpan, data_.restart_seconds(), data_.now());
    // The box and what it chooses stay together.
    const float label_width = ImGui::CalcTextSize(label.c_str()).x;
    same_line_if_fits(checkbox_width("Whole run") + theme.px(14) + label_width, theme.px(14));
    if (outlined_checkbox("Whole run", &all)) window_ = all ? Window::kAll : Window::kRecent;
    ImGui::SetItemTooltip(
        "On: everything since the dashboard began to watch this engine. Off: the last minute.");
    if (same_line_if_fits(label_width, theme.px(14))) ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("%s", label.c_str());
    ImGui::SetItemTooltip("GPU busy and padding are averages %s.", interval().c_str());
    // Side by side with one legend, or stacked with a legend in each plot.
    wide_ = ImGui::GetContentRegionAvail().x >= 36 * ImGui::GetFontSize();
    if (wide_) draw_legend(theme, legend_entries(theme));
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float memory = memory_height(theme);
    const float spacing = ImGui::GetStyle().ItemSpacing.y;
    // Where three plots do not fit, the last ones are left out: their numbers are above.
    const float plots = room.y - memory - spacing, least = 4.5f * small_text_size();
    const int fitting = std::clamp(static_cast<int>(plots / (least + spacing)), 1, 3);
    const int lines = wide_ ? 1 : fitting, shown = wide_ ? 3 : fitting;
    const float height = std::max(plots / static_cast<float>(lines) - spacing, least);
    const float width = wide_ ? (room.x - 2 * theme.px(10)) / 3 : room.x;
    const auto next = [&] {
      if (wide_) ImGui::SameLine(0, theme.px(10));
    };
    collect();
    // Below each other, only the last one has the time written under it.
    draw_sequences(theme, {width, height}, wide_ || shown == 1);
    next();
    if (shown > 1) draw_rates(theme, {width, height}, wide_ || shown == 2);
    next();
    if (shown > 2) draw_shares(theme, {width, height});
    draw_memory(theme);
  }

  void report(ValueSink& values) const override {
    const OccupancyBucket sum = data_.sum(window_);
    values.set("batch", data_.batch());
    values.set("running", data_.counts().running);
    values.set("waiting", data_.counts().waiting);
    values.set("swapped", data_.counts().swapped);
    values.set("mean_batch", sum.batch());
    values.set("padding_share", sum.padding_share());
    values.set("busy_share", sum.busy_share());
    values.set("tokens_per_s", data_.generated_per_s());
    values.set("prompt_tokens_per_s", data_.prompt_per_s());
    values.set("steps_per_s", data_.steps_per_s());
    values.set("memory_bytes", static_cast<double>(data_.memory().used_bytes));
    values.set("memory_budget_bytes", static_cast<double>(data_.memory().budget_bytes));
    values.set("window", window_ == Window::kAll ? "all" : "recent");
    values.set("interval", interval());
  }

 private:
  std::string interval() const {
    return interval_words(window_ == Window::kAll ? 0 : OccupancyData::kFineSpan,
                          data_.restart_seconds(), data_.now());
  }

  using Window = OccupancyData::Window;

  void draw_numbers(const Theme& theme) {
    const OccupancyBucket sum = data_.sum(window_);
    const SchedulerCounts& counts = data_.counts();
    const NamedNumber tiles[] = {
        {"tokens/s", format_value(data_.generated_per_s(), Unit::kPlain),
         fmt::format(
             "Tokens generated in the last second, in which {} prompt tokens were also computed.",
             format_value(data_.prompt_per_s(), Unit::kPlain)),
         true},
        {"running", fmt::format("{} of {}", counts.running, data_.max_sequences()),
         fmt::format("Sequences admitted to run, of the maximum number. The newest step had {} of "
                     "them in its batch; {:.1f} on average {}.",
                     data_.batch(), sum.batch(), interval())},
        {"waiting", std::to_string(counts.waiting), "Requests in the queue, not running yet."},
        {"swapped", std::to_string(counts.swapped),
         "Preempted requests whose KV blocks are in host memory."},
        {"GPU busy", format_value(sum.busy_share(), Unit::kShare),
         fmt::format("The fraction of time in which a step ran, {}.", interval())},
        {"padding", format_value(sum.padding_share(), Unit::kShare),
         fmt::format("The fraction of computed tokens that were only padding, {}.", interval())},
    };
    draw_tiles(theme, tiles);
  }

  // No colour is used twice in the three plots.
  static std::array<LegendEntry, 8> legend_entries(const Theme& theme) {
    using Mark = LegendEntry::Mark;
    return {{{"running", theme.phase_color(PhaseColor::kCached), Mark::kSquare, 0},
             {"waiting", theme.phase_color(PhaseColor::kWaiting), Mark::kLine, 0},
             {"swapped", theme.phase_color(PhaseColor::kSwapped), Mark::kLine, 0},
             {"batch size", theme.text_color(), Mark::kLine, 0},
             {"generated tokens/s", theme.phase_color(PhaseColor::kDecode), Mark::kLine, 0},
             {"prompt tokens/s", theme.phase_color(PhaseColor::kPrefill), Mark::kLine, 0},
             {"GPU busy", theme.gpu_time_color(), Mark::kLine, 0},
             {"padding", theme.phase_color(PhaseColor::kPadding), Mark::kLine, 0}}};
  }
  // The entries that belong to one plot.
  std::span<const LegendEntry> own_legend(const Theme& theme, size_t first, size_t count) {
    entries_ = legend_entries(theme);
    return wide_ ? std::span<const LegendEntry>() : std::span(entries_).subspan(first, count);
  }
  const char* title(const char* name) const { return wide_ ? name : nullptr; }

  void collect() {
    const std::deque<OccupancyBucket>& series = data_.series(window_);
    for (std::vector<PlotPoint>* points :
         {&running_, &waiting_, &swapped_, &batch_, &generated_, &prompt_, &busy_, &padding_})
      points->clear();
    for (const OccupancyBucket& bucket : series) {
      // The last bucket is incomplete, so its rates would dip.
      if (&bucket == &series.back() && series.size() > 1) break;
      const double at = (bucket.from + bucket.to) / 2 - data_.now();
      running_.push_back({at, static_cast<double>(bucket.running)});
      waiting_.push_back({at, static_cast<double>(bucket.waiting)});
      swapped_.push_back({at, static_cast<double>(bucket.swapped)});
      batch_.push_back({at, bucket.batch()});
      generated_.push_back({at, bucket.generated_per_s()});
      prompt_.push_back({at, bucket.prompt_per_s()});
      busy_.push_back({at, bucket.busy_share()});
      padding_.push_back({at, bucket.padding_share()});
    }
  }

  static float label_width() { return std::ceil(small_text_size() * 3.4f); }

  PlotAxis time_axis(bool labels = true) const {
    return {.min = -data_.span(window_), .max = 0, .unit = Unit::kSeconds, .labels = labels};
  }

  static double highest(std::initializer_list<const std::vector<PlotPoint>*> lists) {
    double maximum = 0;
    for (const std::vector<PlotPoint>* list : lists)
      for (const PlotPoint& point : *list) maximum = std::max(maximum, point.y);
    return maximum;
  }

  // The bucket under the mouse, or null.
  const OccupancyBucket* bucket_at(double seconds) const {
    const double time = seconds + data_.now();
    for (const OccupancyBucket& bucket : data_.series(window_))
      if (time >= bucket.from && time < bucket.to) return &bucket;
    return nullptr;
  }

  void draw_sequences(const Theme& theme, ImVec2 size, bool labels) {
    Plot plot(theme, "sequences over time",
              {.size = size,
               .x = time_axis(labels),
               .y = {.max = axis_end(1.1 * highest({&running_, &waiting_, &swapped_}), 4),
                     .title = title("sequences")},
               .left = label_width(),
               .legend = own_legend(theme, 0, 4)});
    plot.area(running_, {}, faded(theme.phase_color(PhaseColor::kCached), 0.6f));
    plot.steps(waiting_, theme.phase_color(PhaseColor::kWaiting), 2);
    plot.steps(swapped_, theme.phase_color(PhaseColor::kSwapped), 2);
    plot.line(batch_, faded(theme.text_color(), 0.8f), 1);
    if (const OccupancyBucket* bucket = plot.hovered() ? bucket_at(plot.mouse_x()) : nullptr) {
      plot.crosshair();
      ImGui::SetTooltip("%s ago\n%u running, %u waiting, %u swapped\naverage batch size %.1f",
                        format_value(-plot.mouse_x(), Unit::kSeconds).c_str(), bucket->running,
                        bucket->waiting, bucket->swapped, bucket->batch());
    }
  }

  void draw_rates(const Theme& theme, ImVec2 size, bool labels) {
    Plot plot(theme, "tokens per second over time",
              {.size = size,
               .x = time_axis(labels),
               .y = {.max = axis_end(1.1 * highest({&generated_, &prompt_}), 1),
                     .title = title("tokens/s")},
               .left = label_width(),
               .legend = own_legend(theme, 4, 2)});
    plot.line(prompt_, theme.phase_color(PhaseColor::kPrefill), 1.5f);
    plot.area(generated_, {}, faded(theme.phase_color(PhaseColor::kDecode), 0.25f));
    plot.line(generated_, theme.phase_color(PhaseColor::kDecode), 2);
    if (const OccupancyBucket* bucket = plot.hovered() ? bucket_at(plot.mouse_x()) : nullptr) {
      plot.crosshair();
      ImGui::SetTooltip("%s ago\ngenerated %s\nprompt %s",
                        format_value(-plot.mouse_x(), Unit::kSeconds).c_str(),
                        format_value(bucket->generated_per_s(), Unit::kTokensPerSecond).c_str(),
                        format_value(bucket->prompt_per_s(), Unit::kTokensPerSecond).c_str());
    }
  }

  void draw_shares(const Theme& theme, ImVec2 size) {
    Plot plot(theme, "shares over time",
              {.size = size,
               .x = time_axis(),
               .y = {.max = 1.05, .unit = Unit::kShare, .title = title("GPU busy, padding")},
               .left = label_width(),
               .legend = own_legend(theme, 6, 2)});
    plot.area(busy_, {}, faded(theme.gpu_time_color(), 0.25f));
    plot.line(busy_, theme.gpu_time_color(), 2);
    plot.line(padding_, theme.phase_color(PhaseColor::kPadding), 2);
    if (const OccupancyBucket* bucket = plot.hovered() ? bucket_at(plot.mouse_x()) : nullptr) {
      plot.crosshair();
      ImGui::SetTooltip("%s ago\nGPU busy %s\npadding %s",
                        format_value(-plot.mouse_x(), Unit::kSeconds).c_str(),
                        format_value(bucket->busy_share(), Unit::kShare).c_str(),
                        format_value(bucket->padding_share(), Unit::kShare).c_str());
    }
  }

  // Lays out the legend of the memory bar first, because the plots above take the remaining space.
  float memory_height(const Theme& theme) {
    const MemoryBar& memory = data_.memory();
    names_.clear();
    parts_.clear();
    if (memory.parts.empty()) return 0;
    const auto bytes = [](uint64_t size) {
      return format_value(static_cast<double>(size), Unit::kBytes);
    };
    for (const MemoryPart& part : memory.parts)
      names_.push_back(fmt::format("{} {}", part.name, bytes(part.bytes)));
    const std::string used = bytes(memory.used_bytes);
    names_.push_back(memory.budget_bytes > 0
                         ? fmt::format("memory: {} of {}", used, bytes(memory.budget_bytes))
                         : fmt::format("memory: {}", used));
    parts_.push_back({names_.back().c_str(), theme.phase_color(PhaseColor::kFree)});
    for (size_t i = 0; i < memory.parts.size(); ++i)
      parts_.push_back({names_[i].c_str(), theme.memory_color(memory.parts[i].name)});
    return theme.px(14) + ImGui::GetStyle().ItemSpacing.y +
           legend_height(theme, parts_, ImGui::GetContentRegionAvail().x);
  }

  void draw_memory(const Theme& theme) {
    const MemoryBar& memory = data_.memory();
    if (memory.parts.empty()) return;
    draw_legend(theme, parts_);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 size(std::max(ImGui::GetContentRegionAvail().x, 1.0f), theme.px(14));
    ImGui::InvisibleButton("memory by kind", size);
    const bool hovered = ImGui::IsItemHovered();
    const float mouse = ImGui::GetMousePos().x;
    const auto whole = static_cast<float>(std::max<uint64_t>(memory.scale_bytes(), 1));
    draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme.phase_color(PhaseColor::kFree),
                       theme.px(2));
    float x = at.x;
    for (size_t i = 0; i < memory.parts.size(); ++i) {
      const float part_width = size.x * static_cast<float>(memory.parts[i].bytes) / whole;
      draw.AddRectFilled({x, at.y}, {x + std::max(part_width - 1, 1.0f), at.y + size.y},
                         parts_[i + 1].color);
      if (hovered && mouse >= x && mouse < x + part_width)
        ImGui::SetTooltip("%s", names_[i].c_str());
      x += part_width;
    }
    if (hovered && mouse >= x)
      ImGui::SetTooltip(
          "%s of the device's memory are not used by this engine.",
          format_value(static_cast<double>(memory.scale_bytes() - memory.used_bytes), Unit::kBytes)
              .c_str());
  }

  OccupancyData data_;
  Window window_ = Window::kRecent;
  bool wide_ = true;
  std::array<LegendEntry, 8> entries_;  // of the plot being drawn
  std::vector<PlotPoint> running_, waiting_, swapped_, batch_, generated_, prompt_, busy_, padding_;
  std::vector<std::string> names_;
  std::vector<LegendEntry> parts_;
};

const PanelRegistration kOccupancyRegistration([] { return std::make_unique<OccupancyPanel>(); });

}  // namespace
}  // namespace hearth
