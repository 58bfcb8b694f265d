// Latency: TTFT, TBT and TPOT, for all streams together and for each one.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ui/data/axis.h"
#include "ui/data/latency_data.h"
#include "ui/data/number_interval.h"
#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/draw/tiles.h"
#include "ui/panel.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr PanelInfo kLatencyInfo{
    .name = "Latency",
    .key = "latency",
    .region = Region::kBottomLeft,
    .order = 0,
    .description = "How long tokens take: TTFT, TBT and TPOT, over time and as a histogram."};
constexpr std::array<LatencyKind, kLatencyKinds> kKinds = {LatencyKind::kTtft, LatencyKind::kTbt,
                                                           LatencyKind::kTpot};

class LatencyPanel : public Panel {
 public:
  LatencyPanel() : Panel(kLatencyInfo) {}

  void update(const PanelContext& context) override { data_.update(context.view); }

  void draw(const PanelContext& context) override {
    const Theme& theme = context.theme;
    draw_controls(theme);
    if (ImGui::GetContentRegionAvail().y >= theme.px(240))
      draw_table(context);
    else
      draw_line(theme);
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float height = std::max(room.y, theme.px(80));
    if (room.x >= theme.px(320)) {
      const float right = std::clamp(room.x * 0.36f, theme.px(110), theme.px(420));
      draw_series(context, {room.x - right - theme.px(10), height});
      ImGui::SameLine(0, theme.px(10));
      draw_histogram(theme, {right, height});
    } else {
      const float half = std::max((room.y - ImGui::GetStyle().ItemSpacing.y) / 2, theme.px(80));
      draw_series(context, {room.x, half});
      draw_histogram(theme, {room.x, half});
    }
  }

  void report(ValueSink& values) const override {
    for (const LatencyKind kind : kKinds) {
      const LatencyStats stats = data_.stats(kind, window_);
      std::string name = latency_name(kind);
      for (char& letter : name) letter = static_cast<char>(letter + ('a' - 'A'));
      values.set(name + "_count", static_cast<double>(stats.count));
      values.set(name + "_p50_ms", stats.p50 * 1e3);
      values.set(name + "_p90_ms", stats.p90 * 1e3);
      values.set(name + "_p99_ms", stats.p99 * 1e3);
    }
    values.set("window", window_ == Window::kAll ? "all" : "recent");
    values.set("interval", interval());
    values.set("shown", latency_name(kind_));
    std::vector<const LatencyStream*> streams;
    data_.streams(window_, streams);
    values.set("streams", static_cast<double>(streams.size()));
  }

 private:
  using Window = LatencyData::Window;

  std::string interval() const {
    return interval_words(window_ == Window::kAll ? 0 : LatencyData::kRecentSeconds,
                          data_.restart_seconds(), data_.now());
  }

  void draw_controls(const Theme& theme) {
    const LatencyStats stats = data_.stats(kind_, window_);
    const std::string name = fmt::format("{} p50", latency_name(kind_));
    const NamedNumber headline[] = {
        {name.c_str(), stats.count == 0 ? "-" : format_value(stats.p50, Unit::kSeconds),
         latency_description(kind_), true}};
    draw_tiles(theme, headline);
    bool all = window_ == Window::kAll;
    const std::string label =
        interval_label(all ? 0 : LatencyData::kRecentSeconds, data_.restart_seconds(), data_.now());
    // The box and what it chooses stay together.
    const float label_width = ImGui::CalcTextSize(label.c_str()).x;
    same_line_if_fits(checkbox_width("Whole run") + theme.px(14) + label_width, theme.px(14));
    if (outlined_checkbox("Whole run", &all)) window_ = all ? Window::kAll : Window::kRecent;
    ImGui::SetItemTooltip(
        "On: everything since the dashboard began to watch this engine, at most %zu values of "
        "each\n"
        "kind. Off: the last %.0f seconds.",
        LatencyData::kMaxSamples, LatencyData::kRecentSeconds);
    if (same_line_if_fits(label_width, theme.px(14))) ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("%s", label.c_str());
    ImGui::SetItemTooltip("Percentiles are %s, of %zu streams.", interval().c_str(),
                          streams_.size());
  }

  void draw_table(const PanelContext& context) {
    const LatencyStream* marked = data_.find(context.selection.marked());
    const bool wide = ImGui::GetContentRegionAvail().x >= 30 * ImGui::GetFontSize();
    if (!ImGui::BeginTable("latency numbers", wide ? 6 : 4,
                           ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_PadOuterX))
      return;
    for (const char* name : {"", "p50", "p90", "p99", "mean", "count"}) {
      if (!wide && ImGui::TableGetColumnIndex() == 3) break;
      ImGui::TableNextColumn();
      // In the colours of the lines in the plot.
      const int column = ImGui::TableGetColumnIndex();
      const bool line = column >= 1 && column <= 3;
      if (line) ImGui::PushStyleColor(ImGuiCol_Text, context.theme.percentile_color(column - 1));
      right_aligned(name, !line);
      if (line) ImGui::PopStyleColor();
    }
    for (const LatencyKind kind : kKinds) {
      ImGui::TableNextColumn();
      if (ImGui::Selectable(latency_name(kind), kind_ == kind)) kind_ = kind;
      ImGui::SetItemTooltip("%s\nClick to show it below.", latency_description(kind));
      numbers_row(data_.stats(kind, window_), wide);
    }
    ImGui::TableNextColumn();
    // This row is always there, so that nothing moves when the mouse enters a stream.
    if (marked && marked->tokens > 0) {
      ImGui::Text("#%llu", static_cast<unsigned long long>(marked->request));
      ImGui::SetItemTooltip("The time between tokens of this request's stream.");
      numbers_row(data_.stats(*marked, window_), wide);
    } else {
      ImGui::TextDisabled("one request");
      ImGui::SetItemTooltip(
          "Put the mouse over a request in any panel: the time between its tokens is shown here.");
      numbers_row({}, wide);
    }
    ImGui::EndTable();
  }

  // Without space for the table, only the selected kind.
  void draw_line(const Theme& theme) {
    for (const LatencyKind kind : kKinds) {
      if (kind != kKinds[0]) ImGui::SameLine();
      const float width = ImGui::CalcTextSize(latency_name(kind)).x;
      if (ImGui::Selectable(latency_name(kind), kind_ == kind, 0, {width, 0})) kind_ = kind;
      ImGui::SetItemTooltip("%s", latency_description(kind));
    }
    const LatencyStats stats = data_.stats(kind_, window_);
    int line = 1;  // p50 is the headline
    for (const auto& [name, value] : {std::pair{"p90", stats.p90}, std::pair{"p99", stats.p99}}) {
      const std::string text = stats.count == 0 ? "-" : format_value(value, Unit::kSeconds);
      const float width = ImGui::CalcTextSize(name).x + ImGui::CalcTextSize(text.c_str()).x;
      same_line_if_fits(width + ImGui::GetFontSize() / 3, ImGui::GetFontSize());
      ImGui::PushStyleColor(ImGuiCol_Text, theme.percentile_color(line++));
      ImGui::TextUnformatted(name);
      ImGui::PopStyleColor();
      ImGui::SameLine(0, ImGui::GetFontSize() / 3);
      ImGui::TextUnformatted(text.c_str());
    }
  }

  static void right_aligned(const std::string& text, bool dim) {
    const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
    if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
    if (dim)
      ImGui::TextDisabled("%s", text.c_str());
    else
      ImGui::TextUnformatted(text.c_str());
  }

  static void numbers_row(const LatencyStats& stats, bool wide) {
    for (const double value : {stats.p50, stats.p90, stats.p99, stats.mean}) {
      if (!wide && ImGui::TableGetColumnIndex() == 3) return;
      ImGui::TableNextColumn();
      right_aligned(stats.count == 0 ? "-" : format_value(value, Unit::kSeconds), stats.count == 0);
    }
    ImGui::TableNextColumn();
    right_aligned(format_value(static_cast<double>(stats.count), Unit::kPlain), stats.count == 0);
  }

  void draw_series(const PanelContext& context, ImVec2 size) {
    data_.streams(window_, streams_);
    if (kind_ == LatencyKind::kTbt)
      draw_tbt(context, size);
    else
      draw_requests(context, size);
  }

  PlotAxis time_axis() const {
    // Seconds before now, so that the axis labels stay in place.
    return {.min = -data_.span(window_), .max = 0, .unit = Unit::kSeconds};
  }

  // An empty plot has a usual scale, not the smallest one.
  static double time_end(double highest) {
    return highest > 0 ? axis_end(1.05 * highest, 1e-5) : 0.1;
  }

  void draw_tbt(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    const std::vector<LatencyBucket> series = data_.series(window_);
    double highest = 0;
    p50_.clear();
    p90_.clear();
    p99_.clear();
    for (const LatencyBucket& bucket : series) {
      const double at = (bucket.from + bucket.to) / 2 - data_.now();
      p50_.push_back({at, bucket.p50});
      p90_.push_back({at, bucket.p90});
      p99_.push_back({at, bucket.p99});
      highest = std::max(highest, bucket.p99);
    }
    using Mark = LegendEntry::Mark;
    const LegendEntry entries[] = {{"TBT p50", theme.percentile_color(0), Mark::kLine, 0},
                                   {"p90", theme.percentile_color(1), Mark::kLine, 0},
                                   {"p99", theme.percentile_color(2), Mark::kLine, 0},
                                   {"tokens", theme.text_color(), Mark::kDot, 0}};
    Plot plot(theme, "time between tokens",
              {.size = size,
               .x = time_axis(),
               .y = {.max = time_end(highest), .unit = Unit::kSeconds},
               .legend = entries});
    draw_stream_dots(context, plot);
    // While nothing is generated, there is nothing to show.
    const double gap = series.empty() ? 0 : 2.5 * (series.front().to - series.front().from);
    plot.line(p50_, theme.percentile_color(0), 2, gap);
    plot.line(p90_, theme.percentile_color(1), 1.5f, gap);
    plot.line(p99_, theme.percentile_color(2), 1.5f, gap);
    if (!plot.hovered() || series.empty()) return;
    plot.crosshair();
    const double time = plot.mouse_x() + data_.now();
    const auto near = std::min_element(series.begin(), series.end(),
                                       [&](const LatencyBucket& a, const LatencyBucket& b) {
                                         return std::abs(a.from - time) < std::abs(b.from - time);
                                       });
    ImGui::SetTooltip("%s ago: %zu tokens\nTBT p50  %s\nTBT p90  %s\nTBT p99  %s",
                      format_value(std::max(-plot.mouse_x(), 0.0), Unit::kSeconds).c_str(),
                      near->count, format_value(near->p50, Unit::kSeconds).c_str(),
                      format_value(near->p90, Unit::kSeconds).c_str(),
                      format_value(near->p99, Unit::kSeconds).c_str());
  }

  // All tokens if they are few enough to tell apart, otherwise only those of the marked stream.
  void draw_stream_dots(const PanelContext& context, Plot& plot) {
    const Theme& theme = context.theme;
    const RequestId marked = context.selection.marked();
    constexpr size_t kMaxDots = 4000;
    size_t dots = 0;
    for (const LatencyStream* stream : streams_) dots += stream->gaps.size();
    if (dots <= kMaxDots)
      for (const LatencyStream* stream : streams_)
        if (stream->request != marked)
          for (const LatencySample& gap : stream->gaps)
            dot(plot, gap, faded(theme.sequence_color(stream->request), marked ? 0.25f : 0.6f),
                theme.px(1.5f), context);
    const LatencyStream* stream = data_.find(marked);
    if (!stream) return;
    one_.clear();
    for (const LatencySample& gap : stream->gaps)
      if (gap.at >= data_.from(window_)) one_.push_back({gap.at - data_.now(), gap.seconds});
    plot.line(one_, theme.sequence_color(marked), 2.5f);
  }

  void dot(Plot& plot, const LatencySample& sample, ImU32 color, float radius,
           const PanelContext& context) {
    const PlotPoint at{sample.at - data_.now(), sample.seconds};
    // Small dots are drawn as squares, which have far fewer vertices.
    if (radius <= context.theme.px(2)) {
      const ImVec2 center(plot.x_pixel(at.x), plot.y_pixel(at.y));
      plot.canvas().AddRectFilled({center.x - radius, center.y - radius},
                                  {center.x + radius, center.y + radius}, color);
      return;
    }
    if (!plot.dot(at, radius, color)) return;
    context.selection.next_hovered = sample.request;
    if (plot.clicked())
      context.selection.pinned = context.selection.pinned == sample.request ? 0 : sample.request;
    ImGui::SetTooltip("Request #%llu: %s", static_cast<unsigned long long>(sample.request),
                      format_value(sample.seconds, Unit::kSeconds).c_str());
  }

  // TTFT and TPOT have one value per request.
  void draw_requests(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    const LatencyStats stats = data_.stats(kind_, window_);
    data_.newest_samples(kind_, window_, 2000, shown_);
    double highest = 0;
    for (const LatencySample& sample : shown_) highest = std::max(highest, sample.seconds);
    const std::string name = fmt::format("{} per request", latency_name(kind_));
    const LegendEntry entries[] = {
        {name.c_str(), theme.sequence_color(5), LegendEntry::Mark::kDot, 0}};
    Plot plot(theme, "time of requests",
              {.size = size,
               .x = time_axis(),
               .y = {.max = time_end(highest), .unit = Unit::kSeconds},
               .legend = entries});
    if (stats.count > 0) {
      plot.reference(stats.p50, theme.percentile_color(0), "p50");
      plot.reference(stats.p99, theme.percentile_color(2), "p99");
    }
    const RequestId marked = context.selection.marked();
    for (const LatencySample& sample : shown_)
      dot(plot, sample,
          faded(theme.sequence_color(sample.request),
                marked == 0 || marked == sample.request ? 0.9f : 0.3f),
          theme.px(marked == sample.request ? 5 : 3), context);
  }

  void draw_histogram(const Theme& theme, ImVec2 size) {
    // Bars of a few pixels each.
    const std::vector<Quantiles::Bar> bars =
        data_.histogram(kind_, window_, size.x < theme.px(240) ? 8 : 16);
    double min = 1e-3, max = 1e-1;
    uint64_t highest = 1;
    if (!bars.empty()) {
      // At least one decade, so that equal values do not fill the width.
      min = bars.front().from / 1.6;
      max = std::max(bars.back().to * 1.6, min * 10);
    }
    bars_.clear();
    for (const Quantiles::Bar& bar : bars) {
      highest = std::max(highest, bar.count);
      bars_.push_back({bar.from, bar.to, static_cast<double>(bar.count)});
    }
    const std::string title = fmt::format(
        "{} by {}", kind_ == LatencyKind::kTbt ? "tokens" : "requests", latency_name(kind_));
    Plot plot(theme, "latency histogram",
              {.size = size,
               .x = {.min = min, .max = max, .logarithmic = true, .unit = Unit::kSeconds},
               .y = {.max = 1.05 * static_cast<double>(highest), .title = title.c_str()},
               .left = std::ceil(small_text_size() * 2.6f)});
    plot.bars(bars_, faded(theme.text_color(), 0.35f));
    const LatencyStats stats = data_.stats(kind_, window_);
    if (stats.count > 0) {
      plot.marker(stats.p50, theme.percentile_color(0), nullptr);
      plot.marker(stats.p90, theme.percentile_color(1), nullptr);
      plot.marker(stats.p99, theme.percentile_color(2), nullptr);
    }
    if (!plot.hovered()) return;
    const double at = plot.mouse_x();
    for (const Quantiles::Bar& bar : bars)
      if (at >= bar.from && at < bar.to)
        ImGui::SetTooltip("%s to %s: %llu values", format_value(bar.from, Unit::kSeconds).c_str(),
                          format_value(bar.to, Unit::kSeconds).c_str(),
                          static_cast<unsigned long long>(bar.count));
  }

  LatencyData data_;
  Window window_ = Window::kRecent;
  LatencyKind kind_ = LatencyKind::kTbt;
  std::vector<const LatencyStream*> streams_;
  std::vector<LatencySample> shown_;
  std::vector<PlotPoint> p50_, p90_, p99_, one_;
  std::vector<PlotBar> bars_;
};

const PanelRegistration kLatencyRegistration([] { return std::make_unique<LatencyPanel>(); });

}  // namespace
}  // namespace hearth
