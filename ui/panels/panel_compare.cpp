// Compare: the same requests under two policies, one timeline above the other on one time axis, and
// what the difference is.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/axis.h"
#include "ui/data/comparison_desk.h"
#include "ui/draw/plot.h"
#include "ui/draw/tiles.h"
#include "ui/draw/timeline_cells.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/chat_widgets.h"
#include "ui/panels/compare_rows.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr uint32_t kMostComparedSequences = 8;  // so that some have to wait

class ComparePanel : public Panel {
 public:
  ComparePanel()
      : Panel({.name = "Compare",
               .key = "compare",
               .region = Region::kTop,
               .order = 1,
               .description = "The same requests under two policies, on one time axis."}) {}

  void update(const PanelContext& context) override {
    EngineHost& host = context.host;
    if (std::optional<ComparisonWish> wish = host.take_comparison()) {
      desk_.want(std::move(*wish));
      pause_engine(host, context.view);
    }
    if (!host.comparing()) {
      resume_engine(host);
      desk_.player.play(false);
    }
    const Session* const session = host.session();
    SchedulerLimits limits = compared_limits();
    ComparisonDesk::Borrow borrow;
    if (session != nullptr) {
      limits = session->engine_options().limits;
      limits.max_sequences = std::min(limits.max_sequences, kMostComparedSequences);
      borrow = [&host](std::function<void(Session&)> work) {
        return host.borrow_session("comparing", std::move(work));
      };
    }
    desk_.update(static_cast<double>(ImGui::GetIO().DeltaTime), !host.loading().active, limits,
                 borrow);
    host.animate(desk_.player.playing() || desk_.running());
  }

  void draw(const PanelContext& context) override {
    draw_choice(context);
    if (desk_.running()) ImGui::TextDisabled("Running both: %s ...", desk_.status().c_str());
    if (!desk_.failure().empty()) warning_text(context.theme, desk_.failure());
    const Comparison* const comparison = desk_.player.comparison();
    if (comparison == nullptr) return;
    draw_player();
    TimelineData::Marks marks = desk_.player.timeline(0).marks();
    marks.recomputed |= desk_.player.timeline(1).marks().recomputed;
    draw_legend(context.theme, timeline_legend(context.theme, marks));
    draw_timelines(context, *comparison);
    draw_outcome(context, *comparison);
  }

  void report(ValueSink& values) const override {
    values.set("first", desk_.labels[0]);
    values.set("second", desk_.labels[1]);
    values.set("running", desk_.running() ? 1 : 0);
    values.set("failure", desk_.failure());
    const ComparisonPlayer& player = desk_.player;
    values.set("done", player.comparison() != nullptr ? 1 : 0);
    if (player.comparison() == nullptr) return;
    values.set("playing", player.playing() ? 1 : 0);
    values.set("now", player.now());
    values.set("end", player.end());
    values.set("simulated", player.comparison()->simulated ? 1 : 0);
    const NumbersPair& numbers = player.numbers();
    const char* names[] = {"first", "second"};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto name = [&](const char* what) { return fmt::format("{}_{}", names[i], what); };
      values.set(name("finished"), static_cast<double>(numbers[i].finished));
      values.set(name("seconds"), numbers[i].seconds);
      values.set(name("steps"), static_cast<double>(numbers[i].use.steps));
      values.set(name("padding_share"), numbers[i].use.padding_share());
      values.set(name("rows"), static_cast<double>(player.timeline(i).rows()));
    }
    std::string words;
    for (const std::string& sentence : difference_in_words(numbers))
      words += words.empty() ? sentence : " " + sentence;
    values.set("words", words);
  }

 private:
  // The engine on display would use up processor time meanwhile.
  void pause_engine(EngineHost& host, const EngineView& view) {
    if (host.engine() == nullptr || view.state != EngineState::kRunning) return;
    host.pause(true);
    paused_generation_ = host.generation();
  }
  void resume_engine(EngineHost& host) {
    if (paused_generation_ != 0 && host.generation() == paused_generation_) host.pause(false);
    paused_generation_ = 0;
  }

  void draw_choice(const PanelContext& context) {
    const float width = context.theme.px(150);
    bool changed = false;
    for (size_t i = 0; i < desk_.labels.size(); ++i) {
      if (i > 0) {
        ImGui::SameLine();
        ImGui::AlignTextToFramePadding();
        ImGui::TextUnformatted("against");
        ImGui::SameLine();
      }
      ImGui::SetNextItemWidth(width);
      const std::string label = i == 0 ? "##first policy" : "##second policy";
      if (!begin_combo(label, desk_.labels[i])) continue;
      for (const std::string& choice : choices_)
        if (ImGui::Selectable(choice.c_str(), choice == desk_.labels[i])) {
          desk_.labels[i] = choice;
          changed = true;
        }
      ImGui::EndCombo();
    }
    same_line_if_fits(context.theme.px(300));
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted("requests");
    ImGui::SameLine();
    const float buttons = button_width("Run both") + button_width("Close comparison") +
                          2 * ImGui::GetStyle().ItemSpacing.x;
    ImGui::SetNextItemWidth(
        std::max(ImGui::GetContentRegionAvail().x - buttons, context.theme.px(120)));
    changed |= line_box("##compared requests", desk_.requests);
    ImGui::SetItemTooltip(
        "The requests that both get: an Azure CSV or Mooncake JSONL file, or a synthetic trace.");
    same_line_if_fits(button_width("Run both"));
    changed |= ImGui::Button("Run both");
    ImGui::SetItemTooltip("Run these requests under both policies, each on a new engine.");
    same_line_if_fits(button_width("Close comparison"));
    if (ImGui::Button("Close comparison")) context.host.close_comparison();
    if (changed) desk_.run();
  }

  void draw_player() {
    ComparisonPlayer& player = desk_.player;
    if (ImGui::Button(player.playing() ? "Pause both" : "Play both"))
      player.play(!player.playing());
    ImGui::SameLine();
    if (ImGui::Button("Step back##both")) player.step(false);
    ImGui::SetItemTooltip("Back to the end of the previous step of either side.");
    ImGui::SameLine();
    if (ImGui::Button("Step forward##both")) player.step(true);
    ImGui::SetItemTooltip("On to the end of the next step of either side.");
    ImGui::SameLine();
    if (ImGui::Button("Reset both")) player.reset();
    ImGui::SetItemTooltip("Both sides from the beginning, with empty engines.");
    ImGui::SameLine();
    if (ImGui::Button("To the end")) {
      player.play(false);
      player.seek(player.end());
    }
    same_line_if_fits(10 * ImGui::GetFontSize());
    auto speed = static_cast<float>(player.speed());
    ImGui::SetNextItemWidth(7 * ImGui::GetFontSize());
    if (ImGui::SliderFloat("##speed of both", &speed,
                           static_cast<float>(ComparisonPlayer::kSlowest),
                           static_cast<float>(ComparisonPlayer::kFastest), "speed %.2f x",
                           ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
      player.set_speed(static_cast<double>(speed));
    same_line_if_fits(12 * ImGui::GetFontSize());
    auto now = static_cast<float>(player.now());
    ImGui::SetNextItemWidth(-1);
    const std::string text = fmt::format("{} of {}", format_value(player.now(), Unit::kSeconds),
                                         format_value(player.end(), Unit::kSeconds));
    if (ImGui::SliderFloat("##time of both", &now, 0, static_cast<float>(player.end()),
                           text.c_str(), ImGuiSliderFlags_NoInput)) {
      player.play(false);
      player.seek(static_cast<double>(now));
    }
  }

  static std::string headline(const ComparedNumbers& numbers) {
    std::string text = fmt::format("{}: {} of {} requests finished", numbers.label,
                                   numbers.finished, numbers.requests);
    if (numbers.done)
      text += fmt::format(" after {}", format_value(numbers.seconds, Unit::kSeconds));
    return text + fmt::format(", {:.0f} % padding", 100 * numbers.use.padding_share());
  }

  void draw_timelines(const PanelContext& context, const Comparison& comparison) {
    const Theme& theme = context.theme;
    ComparisonPlayer& player = desk_.player;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float room = ImGui::GetContentRegionAvail().y;
    const float table = 13.5f * ImGui::GetTextLineHeightWithSpacing();
    const size_t rows = std::max(comparison.runs[0].requests.size(), size_t{1});
    const float wanted = static_cast<float>(rows) * theme.px(24);
    const float height =
        std::clamp((room - table - 2 * line - small_text_size() - theme.px(12)) / 2, theme.px(90),
                   std::max(wanted, theme.px(90)));
    const float left = plot_label_width();
    const TimeAxis axis{.end = std::max(player.end() * 1.02, 1e-3),
                        .left = left,
                        .width = std::max(ImGui::GetContentRegionAvail().x - left, 1.0f)};
    const char* ids[] = {"first rows", "second rows"};
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      const ComparedNumbers& numbers = player.numbers()[i];
      ImGui::TextUnformatted(headline(numbers).c_str());
      const double clicked =
          draw_compared_rows(context,
                             {.id = ids[i],
                              .data = player.timeline(i),
                              .axis = axis,
                              .rows = rows,
                              .now = player.now(),
                              .finished_at = numbers.done ? comparison.runs[i].end_seconds() : -1},
                             {axis.left + axis.width, height});
      if (clicked < 0) continue;
      player.play(false);
      player.seek(clicked);
    }
    draw_time_axis(theme, axis, player.now());
  }

  // The table on the left, the words on the right or, if the window is narrow, above it.
  void draw_outcome(const PanelContext& context, const Comparison& comparison) {
    const NumbersPair& numbers = desk_.player.numbers();
    const float room = ImGui::GetContentRegionAvail().x;
    const bool wide = room >= 60 * ImGui::GetFontSize();
    if (!wide) draw_words(context, comparison, numbers);
    const int columns = 4;
    if (ImGui::BeginTable("compared numbers", columns,
                          ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_RowBg |
                              ImGuiTableFlags_BordersInnerV,
                          {wide ? room * 0.62f : 0, 0})) {
      const std::string interval =
          desk_.player.at_end()
              ? std::string("over the whole run")
              : fmt::format("over the first {}", format_value(desk_.player.now(), Unit::kSeconds));
      ImGui::TableSetupColumn(interval.c_str());
      ImGui::TableSetupColumn(numbers[0].label.c_str());
      ImGui::TableSetupColumn((numbers[1].label + "##second").c_str());
      ImGui::TableSetupColumn("difference");
      ImGui::TableHeadersRow();
      for (const ComparedLine& line : compared_lines(numbers)) {
        ImGui::TableNextRow();
        for (const std::string& text :
             {line.name, line.values[0], line.values[1], line.difference}) {
          ImGui::TableNextColumn();
          ImGui::TextUnformatted(text.c_str());
        }
      }
      ImGui::EndTable();
    }
    if (!wide) return;
    ImGui::SameLine(0, 2 * ImGui::GetFontSize());
    ImGui::BeginGroup();
    draw_words(context, comparison, numbers);
    ImGui::EndGroup();
  }

  static void draw_words(const PanelContext& context, const Comparison& comparison,
                         const NumbersPair& numbers) {
    ImGui::PushTextWrapPos(0);
    const std::vector<std::string> words = difference_in_words(numbers);
    if (words.empty()) ImGui::TextDisabled("Who will finish first?");
    for (const std::string& sentence : words) {
      ImGui::TextUnformatted(sentence.c_str());
      ImGui::Spacing();
    }
    const std::string where =
        comparison.simulated
            ? fmt::format("{} on {}, in virtual time: the same on every machine.", comparison.model,
                          comparison.device)
            : fmt::format(
                  "{} on {}, one after the other: two engines at once would take the "
                  "device's time from each other.",
                  comparison.model, comparison.device);
    ImGui::PushStyleColor(ImGuiCol_Text, faded(context.theme.text_color(), 0.6f));
    ImGui::TextUnformatted(where.c_str());
    ImGui::PopStyleColor();
    ImGui::PopTextWrapPos();
  }

  ComparisonDesk desk_;
  const std::vector<std::string> choices_ = comparison_choices();
  uint64_t paused_generation_ = 0;  // of the engine that was paused; 0: none
};

const PanelRegistration kCompareRegistration([] { return std::make_unique<ComparePanel>(); });

}  // namespace
}  // namespace hearth
