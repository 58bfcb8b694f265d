// hearth dash: the dashboard.
#include <cstdlib>
#include <limits>

#include "tools/commands/command.h"
#include "tools/commands/model_options.h"

#ifdef HEARTH_DASHBOARD
#include "tools/bench/roofline.h"
#include "tools/lessons/lesson_library.h"
#include "tools/lessons/lesson_plan.h"
#include "ui/app.h"
#include "ui/data/comparison_spec.h"
#include "ui/data/recording.h"
#include "ui/data/settings.h"
#endif

namespace hearth {
namespace {

class DashCommand : public Command {
 public:
  DashCommand()
      : Command(CommandGroup::kServe, "dash",
                "Open the dashboard: chat, and watch the engine at work") {
    model_.session.swap_bytes = kDefaultSwapBytes;
    model_.session.prepare_steps = true;
  }

#ifdef HEARTH_DASHBOARD
  void declare(Options& options) override {
    options.example("hearth dash -m model.gguf");
    options.example("hearth dash --connect http://localhost:8080");
    options.example("hearth dash --demo --lesson paging");
    options.example("hearth dash --demo --compare static,continuous");
    options.group("What to show");
    options.add("--demo", &options_.demo,
                "Run the real scheduler on a simulated device; needs no model");
    options.add("--connect URL", &options_.connect,
                "Show a running hearth serve, such as http://host:8080");
    options.add("--api-key KEY", &options_.api_key,
                "API key of that server; $HEARTH_API_KEY is also read");
    options
        .add("--lesson NAME", &options_.lesson,
             "Open a lesson that hearth lesson --list shows, or a .txt file")
        .check([](const std::string& name) {
          const Result<Lesson> lesson = find_lesson(name);
          return lesson.ok() ? std::string() : lesson.error().message;
        });
    options
        .add("--compare A,B", &compare_,
             "Run the same requests under two policies, as in static,continuous, or two values of "
             "a switch, as in kv=reserve,kv=on-demand")
        .check([](const std::string& text) {
          const Result<PolicyPair> pair = parse_comparison(text);
          return pair.ok() ? std::string() : pair.error().message;
        });
    options
        .add("--requests TRACE", &options_.compared_requests,
             "The requests for --compare: a trace, as for hearth replay")
        .needs(options.at("--compare"));
    options.add("--recording FILE", &recording_,
                "Show steps that the dashboard recorded, without an engine");
    options.add("--max-seqs N", &model_.session.max_sequences, "Maximum sequences in a batch")
        .range(1, 4096);
    options.group("Window");
    options.add("--width N", &options_.window.width, "Width in pixels; by default what fits")
        .range(200, 16384);
    options.add("--height N", &options_.window.height, "Height in pixels; by default what fits")
        .range(150, 16384);
    options
        .add("--scale X", &options_.window.scale,
             "Pixels per point, 0.5 to 4; by default the display's scale, or what its size needs")
        .range(0.5, 4)
        .advanced();
    options.add("--zoom X", &options_.zoom, "Size of text and panels, 0.75 to 2").range(0.75, 2);
    options
        .add("--view NAME", &options_.view,
             "What the window shows: simple (the chat), engine (all panels) or class (for a "
             "projector)")
        .check([](const std::string& name) {
          const bool known = name == "simple" || name == "engine" || name == "class";
          return known ? std::string() : "use simple, engine or class";
        });
    options.add("--dark,!--light", &options_.dark, "Colours; by default as last time");
    options.add("--fps X", &options_.frames_per_s, "Frame rate limit")
        .range(std::numeric_limits<double>::min(), 1e9)
        .advanced();
    options
        .add("--window-device NAME", &options_.window.device.device,
             "Device that draws the window, by index or part of its name")
        .advanced();
    options
        .add("--always-vulkan", &options_.window.always_vulkan,
             "Draw with Vulkan even where the CPU runs it, which is slower")
        .advanced();
    options.group("Files and scripts");
    options.add("--state FOLDER", &state_,
                "Where settings and chats are saved; \"none\" saves nothing");
    options.add("--script FILE", &options_.script, "Run a script (docs/dashboard.md)").advanced();
    options
        .add("--output FOLDER", &options_.output_folder,
             "Where the script's files go; created if missing")
        .advanced();
    options.add("--screenshot FILE", &options_.screenshot,
                "Save the last frame as a PNG, and exit");
    options.add("--frames N", &options_.frames, "Exit after N frames").advanced();
    options
        .add("--validate", &validate_,
             "Turn on Vulkan's validation layers; any message is a failure")
        .advanced();
    model_.declare(options);
    model_.declare_speculation(options);
  }

  Status run() override {
    options_.model = {.model = model_.model, .session = model_.session_options()};
    if (!options_.lesson.empty()) {
      HEARTH_ASSIGN(const Lesson lesson, find_lesson(options_.lesson));
      if (changes_only_scheduling(lesson))
        options_.model.session = lesson_session(lesson, {}, options_.model.session);
    }
    if (!compare_.empty()) {
      HEARTH_ASSIGN(options_.compare, parse_comparison(compare_));
    }
    if (!recording_.empty()) {
      HEARTH_ASSIGN(ViewHistory history, read_recording(recording_));
      options_.recording = std::make_shared<ViewHistory>(std::move(history));
    }
    if (const char* key = std::getenv("HEARTH_API_KEY"); options_.api_key.empty() && key != nullptr)
      options_.api_key = key;
    options_.state_folder = state_ == "none" ? std::filesystem::path()
                            : state_.empty() ? default_state_folder()
                                             : std::filesystem::path(state_);
    if (!options_.screenshot.empty() && options_.frames == 0) options_.frames = 60;
    const Validation validation = validate_ ? Validation::kOn : Validation::kOff;
    options_.window.device.validation = options_.model.session.validation = validation;
    options_.measure = measure_roofline;
    return run_app(options_);
  }

 private:
  ModelOptionsGroup model_;
  AppOptions options_;
  std::string state_, compare_, recording_;
  bool validate_ = false;
#else
  void declare(Options& options) override { options.ignore_unknown(); }
  Status run() override {
    return Error{ErrorKind::kUnsupported,
                 "this hearth was built without the dashboard: it needs libglfw3-dev, libpng-dev "
                 "and Dear ImGui (run tools/setup, and build again)"};
  }

 private:
  ModelOptionsGroup model_;
#endif
};

DashCommand dash_command;

}  // namespace
}  // namespace hearth
