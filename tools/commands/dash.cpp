// hearth dash: the dashboard.
#include "tools/commands/command.h"
#include "tools/commands/model_options.h"

#ifdef HEARTH_DASHBOARD
#include "tools/bench/roofline.h"
#include "ui/app.h"
#include "ui/data/settings.h"
#endif

namespace hearth {
namespace {

class DashCommand : public Command {
 public:
  DashCommand() : Command("dash", "The dashboard: chat, and see the engine think") {
    model_.session.swap_bytes = kUsualSwapBytes;
  }

#ifdef HEARTH_DASHBOARD
  void declare(CLI::App& app) override {
    model_.declare(app);
    app.add_option("--max-seqs", model_.session.max_sequences, "Sequences that run at a time")
        ->check(CLI::Range(1u, 4096u));
    app.add_flag("--demo", options_.demo, "A real scheduler over a made-up device: no model");
    app.add_option("--connect", options_.connect, "Shows a `hearth serve`, as http://host:port");
    app.add_option("--api-key", options_.api_key, "Of that server");
    app.add_option("--window-device", options_.window.device.device,
                   "The device that draws the window; otherwise the best that can");
    app.add_option("--width", options_.window.width, "Of the window")
        ->check(CLI::Range(200, 16384));
    app.add_option("--height", options_.window.height, "Of the window")
        ->check(CLI::Range(150, 16384));
    app.add_option("--zoom", options_.zoom, "Size of everything: 0.75 to 2")
        ->check(CLI::Range(0.75, 2.0));
    app.add_flag("--dark,!--light", dark_, "Colours; otherwise as last time");
    app.add_option("--fps", options_.frames_per_s, "Frames a second at most")
        ->check(CLI::PositiveNumber);
    app.add_option("--state", state_, "Where settings and chats are kept; \"none\": nowhere");
    app.add_option("--script", options_.script, "Acts out a file (docs/dashboard.md)");
    app.add_option("--output", options_.output_folder, "Where the script's files go");
    app.add_option("--screenshot", options_.screenshot, "A PNG of the last of --frames frames");
    app.add_option("--frames", options_.frames, "Ends after so many");
    app.add_flag("--validate", validate_,
                 "With Vulkan's validation layers: a message is a failure");
    app_ = &app;
  }

  Status run() override {
    options_.model = {.model = model_.model, .session = model_.session_options()};
    if (app_->count("--dark") > 0) options_.dark = dark_;
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
  CLI::App* app_ = nullptr;
  std::string state_;
  bool dark_ = true, validate_ = false;
#else
  void declare(CLI::App& app) override { app.allow_extras(); }
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
