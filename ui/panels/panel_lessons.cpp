// Lessons: read an explanation, predict, run the experiment on the engine on display, and compare
// the measured answer with the prediction.
#include <string>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "tools/lessons/lesson_plan.h"
#include "ui/data/lesson_comparison.h"
#include "ui/data/lesson_desk.h"
#include "ui/data/settings.h"
#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/chat_widgets.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr const char* kLessonRecord = "lessons.record";  // in the settings
constexpr uint32_t kLessonDemoContext = 1024;            // so that the block map stays readable

// Paragraphs; lines that begin with a space are commands, and not wrapped at words.
void lesson_text(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty())
      ImGui::Spacing();
    else
      ImGui::TextWrapped("%s", line.c_str());
  }
}

LessonStage stage_of(const PanelContext& context) {
  LessonStage stage{.engine = context.host.engine(),
                    .generation = context.host.generation(),
                    .modelled = context.host.is_demo(),
                    .model = context.view.model,
                    .device = context.view.device};
  if (const Session* const session = context.host.session()) {
    stage.tokenizer = session->tokenizer();
    stage.kv_bytes_per_block = static_cast<double>(session->memory().kv_bytes_per_block);
    stage.weight_bytes = static_cast<double>(session->memory().weight_bytes);
  } else {
    const ModelledDevice device;
    stage.kv_bytes_per_block = device.kv_bytes_per_block();
    stage.weight_bytes = device.weight_bytes();
  }
  return stage;
}

class LessonsPanel : public Panel {
 public:
  LessonsPanel()
      : Panel({.name = "Lessons",
               .key = "lessons",
               .region = Region::kLeft,
               .order = 1,
               .description = "Short lessons: predict what the engine will do, run it, compare."}) {
  }

  void update(const PanelContext& context) override {
    if (!std::exchange(record_read_, true))
      desk_.record = context.settings.get(kLessonRecord, LessonDesk::Record{});
    const LessonStage stage = stage_of(context);
    if (std::string name = context.host.take_lesson(); !name.empty()) {
      open(name, stage);
      reserved_ = true;
    }
    if (start_wanted_ && stage.engine != nullptr && !context.host.loading().active) {
      start_wanted_ = false;
      desk_.run(stage);
    }
    const bool done_before = desk_.answer() != nullptr;
    desk_.update(stage, context.host.engine_paused() || context.view.pace > 0);
    if (!done_before && desk_.answer() != nullptr) {
      context.settings.set(kLessonRecord, desk_.record);
      scroll_to_answer_ = true;
    }
    if (desk_.answer() != nullptr || desk_.current() == nullptr) reserved_ = false;
    context.host.reserve_for_lesson(reserved_ || start_wanted_ || desk_.running());
  }

  void draw(const PanelContext& context) override {
    if (desk_.current() == nullptr)
      draw_list(context);
    else
      draw_lesson(context);
  }

  void report(ValueSink& values) const override {
    const Lesson* const lesson = desk_.current();
    values.set("count", static_cast<double>(desk_.lessons().size()));
    values.set("completed", static_cast<double>(desk_.completed()));
    values.set("open", lesson != nullptr ? lesson->name : std::string());
    values.set("running", desk_.running() || start_wanted_ ? 1 : 0);
    values.set("status", desk_.status());
    values.set("prediction",
               desk_.prediction == 0 ? std::string() : std::string(1, desk_.prediction));
    values.set("failure", desk_.failure().empty() ? open_failure_ : desk_.failure());
    values.set("live", desk_.not_live().empty() ? 1 : 0);
    values.set("done", desk_.answer() != nullptr ? 1 : 0);
    if (desk_.answer() == nullptr) return;
    values.set("measured", desk_.answer()->measured);
    values.set("answer", std::string(1, desk_.answer()->letter));
    values.set("right", desk_.answered() == desk_.answer()->letter ? 1 : 0);
  }

 private:
  void open(const std::string& name, const LessonStage& stage) {
    open_failure_ = desk_.open(name, stage);
    scroll_to_top_ = true;
  }

  void draw_list(const PanelContext& context) {
    const std::vector<Lesson>& lessons = desk_.lessons();
    faint_text(
        fmt::format("{} of {} lessons done. Each takes a few minutes: read, predict, run, "
                    "compare.",
                    desk_.completed(), lessons.size()));
    if (!open_failure_.empty()) warning_text(context.theme, open_failure_);
    if (!desk_.failure().empty()) warning_text(context.theme, desk_.failure());
    ImGui::Spacing();
    if (!ImGui::BeginTable("lessons", 3, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("number");
    ImGui::TableSetupColumn("title", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("done");
    std::string chosen;
    for (size_t i = 0; i < lessons.size(); ++i) {
      const Lesson& lesson = lessons[i];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextDisabled("%zu", i + 1);
      ImGui::TableNextColumn();
      if (ImGui::Selectable(lesson.title.c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
        chosen = lesson.name;
      ImGui::SetItemTooltip("%s", lesson.summary.c_str());
      ImGui::TableNextColumn();
      if (const auto done = desk_.record.find(lesson.name); done != desk_.record.end())
        ImGui::TextDisabled("%s", done->second.c_str());
    }
    ImGui::EndTable();
    draw_next_up(chosen);
    if (!chosen.empty()) open(chosen, stage_of(context));
  }

  // Below the list, if there is room: what the first lesson that is not done yet is about.
  void draw_next_up(std::string& chosen) const {
    const auto next = std::ranges::find_if(
        desk_.lessons(), [&](const Lesson& lesson) { return !desk_.record.contains(lesson.name); });
    if (next == desk_.lessons().end()) return;
    const std::string beginning = next->explanation.substr(0, next->explanation.find("\n\n"));
    const float room = ImGui::GetContentRegionAvail().y;
    const float needed =
        ImGui::CalcTextSize(beginning.c_str(), nullptr, false, ImGui::GetContentRegionAvail().x).y +
        ImGui::CalcTextSize(next->summary.c_str(), nullptr, false, ImGui::GetContentRegionAvail().x)
            .y +
        2 * ImGui::GetFrameHeightWithSpacing() + 3 * ImGui::GetTextLineHeightWithSpacing();
    if (room < needed) return;
    ImGui::Dummy({0, ImGui::GetTextLineHeight()});
    ImGui::SeparatorText(fmt::format("Next: {}", next->title).c_str());
    faint_text(next->summary);
    ImGui::Spacing();
    lesson_text(beginning);
    ImGui::Spacing();
    if (ImGui::Button("Open this lesson")) chosen = next->name;
  }

  void draw_lesson(const PanelContext& context) {
    const Lesson& lesson = *desk_.current();
    if (std::exchange(scroll_to_top_, false)) ImGui::SetScrollY(0);
    if (ImGui::Button("All lessons")) {
      desk_.close(stage_of(context));
      start_wanted_ = false;
      return;
    }
    ImGui::SetItemTooltip("Back to the list.");
    ImGui::SeparatorText(lesson.title.c_str());
    lesson_text(lesson.explanation);
    ImGui::SeparatorText("The question");
    lesson_text(lesson.question);
    draw_choices(lesson);
    draw_run(context, lesson);
    if (desk_.answer() != nullptr) draw_answer(context, lesson);
  }

  void draw_choices(const Lesson& lesson) {
    ImGui::BeginDisabled(busy());
    for (const LessonChoice& choice : lesson.choices) {
      const std::string label = fmt::format("{}##choice", choice.letter);
      if (ImGui::RadioButton(label.c_str(), desk_.prediction == choice.letter))
        desk_.prediction = choice.letter;
      name_last_item(fmt::format("choice {}", choice.letter));
      ImGui::SameLine();
      ImGui::TextWrapped("%s (%s)", choice.text.c_str(),
                         describe_range(choice, lesson.unit).c_str());
    }
    ImGui::EndDisabled();
  }

  bool busy() const { return desk_.running() || start_wanted_; }

  void draw_run(const PanelContext& context, const Lesson& lesson) {
    ImGui::Spacing();
    if (busy()) {
      if (ImGui::Button("Stop lesson")) {
        start_wanted_ = false;
        desk_.stop(stage_of(context));
      }
      ImGui::SameLine();
      ImGui::ProgressBar(static_cast<float>(desk_.progress()), ImVec2(-1, 0),
                         desk_.status().c_str());
      return;
    }
    ImGui::BeginDisabled(context.host.loading().active);
    if (ImGui::Button("Run the experiment")) start(context, lesson);
    ImGui::EndDisabled();
    ImGui::SetItemTooltip("Runs: %s", runs_of(lesson).c_str());
    draw_compare(context, lesson);
    if (desk_.prediction == 0) {
      same_line_if_fits(ImGui::CalcTextSize("Predict first.").x);
      ImGui::TextDisabled("Predict first.");
    }
    if (!desk_.failure().empty()) warning_text(context.theme, desk_.failure());
  }

  static void draw_compare(const PanelContext& context, const Lesson& lesson) {
    std::optional<SchedulerLimits> most;
    if (Session* const session = context.host.session()) most = session->engine_options().limits;
    const std::optional<ComparisonPlan> plan = lesson_comparison(lesson, most);
    if (!plan) return;
    same_line_if_fits(button_width("Side by side"));
    if (ImGui::Button("Side by side"))
      context.host.open_comparison({.policies = {}, .plan = plan}, /*for_lesson=*/true);
    ImGui::SetItemTooltip("Watch %s and %s one above the other, on one time axis.",
                          plan->sides[0].label.c_str(), plan->sides[1].label.c_str());
  }

  // The demo gets an engine that the lesson fits, if its own is too small.
  void start(const PanelContext& context, const Lesson& lesson) {
    context.host.pause(false);
    context.host.set_pace(0);
    const LessonStage stage = stage_of(context);
    if (context.host.is_demo() && changes_only_scheduling(lesson) &&
        !why_not_live(lesson, stage).empty()) {
      ModelledLimits limits = lesson_limits(lesson);
      limits.context = kLessonDemoContext;
      context.host.start_demo(scheduler_limits(ModelledDevice{}, limits));
    }
    start_wanted_ = true;
    // Without an engine to wait for, it is simulated.
    if (context.host.engine() == nullptr) {
      start_wanted_ = false;
      desk_.run(stage);
    }
  }

  static std::string runs_of(const Lesson& lesson) {
    std::string text;
    for (const LessonRun& run : lesson.runs) text += fmt::format("\n{}: {}", run.name, run.written);
    return text;
  }

  void draw_answer(const PanelContext& context, const Lesson& lesson) {
    ImGui::SeparatorText("The answer");
    if (std::exchange(scroll_to_answer_, false)) ImGui::SetScrollHereY(0);
    const LessonAnswer& answer = *desk_.answer();
    const char predicted = desk_.answered();
    ImGui::PushStyleColor(ImGuiCol_Text, predicted == answer.letter
                                             ? context.theme.phase_color(PhaseColor::kDecode)
                                             : context.theme.text_color());
    lesson_text(verdict(lesson, answer, predicted));
    ImGui::PopStyleColor();
    draw_table(lesson);
    for (const std::string& paragraph : answer.paragraphs) {
      lesson_text(paragraph);
      ImGui::Spacing();
    }
    faint_text(desk_.not_live().empty()
                   ? fmt::format("Measured live: {} on {}.", desk_.results()->model,
                                 desk_.results()->device)
                   : fmt::format("Simulated on {}. {} `hearth lesson {}` measures it on a device.",
                                 desk_.results()->device, desk_.not_live(), lesson.name));
    ImGui::SeparatorText("What to look at");
    lesson_text(lesson.look_at);
    ImGui::SeparatorText("Try next");
    lesson_text(lesson.try_next);
    const Lesson* const next = desk_.next();
    if (next == nullptr) return;
    ImGui::Spacing();
    const bool pressed = ImGui::Button(fmt::format("Next: {}##next", next->title).c_str());
    name_last_item("Next lesson");
    if (pressed) open(next->name, stage_of(context));
  }

  void draw_table(const Lesson& lesson) const {
    const std::vector<LessonRunResult>& runs = desk_.results()->runs;
    const int columns = static_cast<int>(runs.size()) + 1;
    if (!ImGui::BeginTable(
            "numbers", columns,
            ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerV))
      return;
    ImGui::TableSetupColumn("##number", ImGuiTableColumnFlags_WidthStretch);
    for (const LessonRunResult& run : runs) ImGui::TableSetupColumn(run.name.c_str());
    ImGui::TableHeadersRow();
    for (const std::string& name : lesson.shown) {
      const LessonMetric& metric = *find_metric(name);
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextWrapped("%s", std::string(metric.label).c_str());
      for (const LessonRunResult& run : runs) {
        const std::optional<double> value = metric.read(run);
        const std::string text = value ? format_measured(*value) : "-";
        ImGui::TableNextColumn();
        const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
        if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
        ImGui::TextUnformatted(text.c_str());
      }
    }
    ImGui::EndTable();
  }

  LessonDesk desk_;
  std::string open_failure_;
  bool record_read_ = false;
  bool reserved_ = false;      // opened from the command line and not run yet
  bool start_wanted_ = false;  // waits for the engine
  bool scroll_to_top_ = false, scroll_to_answer_ = false;
};

const PanelRegistration kLessonsRegistration([] { return std::make_unique<LessonsPanel>(); });

}  // namespace
}  // namespace hearth
