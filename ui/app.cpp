#include "ui/app.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "runtime/host/read_file.h"
#include "runtime/log.h"
#include "ui/dashboard.h"
#include "ui/data/frame_pacer.h"
#include "ui/data/settings.h"
#include "ui/fonts.h"
#include "ui/item_log.h"
#include "ui/script_player.h"
#include "ui/theme.h"

namespace hearth {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSaveEverySeconds = 5;

constexpr FrameLimits kGpuFrames;
// Presenting a frame costs as much again as drawing it, on threads of the driver and the display.
constexpr FrameLimits kCpuFrames{.busy_per_s = 20, .idle_per_s = 5, .most_share = 0.05};

FrameLimits frame_limits(bool drawn_by_cpu, double requested_per_s) {
  FrameLimits limits = drawn_by_cpu ? kCpuFrames : kGpuFrames;
  limits.cores = std::max(1u, std::thread::hardware_concurrency());
  if (requested_per_s > 0) limits = {.busy_per_s = requested_per_s, .idle_per_s = requested_per_s};
  return limits;
}

// How long this thread has kept a core busy.
double core_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Owns ImGui's context.
struct ImGuiScope {
  ImGuiScope() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  }
  ~ImGuiScope() { ImGui::DestroyContext(); }
  ImGuiScope(const ImGuiScope&) = delete;
  ImGuiScope& operator=(const ImGuiScope&) = delete;
};

Result<std::unique_ptr<ScriptPlayer>> read_script(const AppOptions& options) {
  constexpr uint64_t kMostBytes = 1 << 20;
  HEARTH_ASSIGN(const std::string text, read_file(options.script, {.most_bytes = kMostBytes}));
  if (!options.output_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.output_folder, error);
    if (error)
      return Error{ErrorKind::kIo, fmt::format("cannot create the folder {}: {}",
                                               options.output_folder.string(), error.message())};
  }
  auto steps = parse_script(text);
  if (!steps.ok())
    return Error{steps.error().kind,
                 fmt::format("{}: {}", options.script.string(), steps.error().message)};
  return std::make_unique<ScriptPlayer>(std::move(steps).value(), options.script.string(),
                                        options.output_folder);
}

class App {
 public:
  explicit App(const AppOptions& options)
      : options_(options), settings_(options.state_folder), host_(options.measure) {}

  Status run() {
    if (!options_.script.empty()) {
      HEARTH_ASSIGN(script_, read_script(options_));
    }
    load_fonts();
    HEARTH_ASSIGN(window_, Window::create(options_.window));
    if (options_.dark) settings_.set("dark", *options_.dark);
    dashboard_ = std::make_unique<Dashboard>(host_, settings_, theme_);
    dashboard_->use_view(options_.view);
    if (options_.zoom > 0) dashboard_->set_zoom(options_.zoom);
    ItemLog::instance().enable(script_ != nullptr);
    open_engine();
    const Status status = run_frames();
    dashboard_->save();
    HEARTH_TRY(status);
    return check_validation();
  }

 private:
  void open_engine() {
    if (!options_.lesson.empty()) {
      host_.open_lesson(options_.lesson);
      host_.reserve_for_lesson(true);
    }
    // A picture shows the outcome, because nobody waits for it.
    if (options_.compare)
      host_.open_comparison({.policies = *options_.compare,
                             .requests = options_.compared_requests,
                             .plan = {},
                             .at_end = !options_.screenshot.empty()});
    if (options_.recording)
      host_.open_recording(*options_.recording);
    else if (options_.demo)
      host_.start_demo();
    else if (!options_.connect.empty())
      host_.connect(options_.connect, options_.api_key);
    else
      host_.open(options_.model);
  }

  Status run_frames() {
    Clock::time_point next = Clock::now(), next_save = next;
    FramePacer pacer(frame_limits(window_->drawn_by_cpu(), options_.frames_per_s));
    for (uint32_t frame = 1; !finished(frame); ++frame) {
      const double left = std::chrono::duration<double>(next - Clock::now()).count();
      window_->wait_for_input(left);
      if (window_->minimized()) window_->wait_for_input(1 / pacer.frames_per_s(true));
      const Clock::time_point begin = Clock::now();
      const double core_before = core_seconds();
      HEARTH_TRY(draw_frame(frame));
      pacer.drawn(core_seconds() - core_before);
      next = begin + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(1 / rate(pacer)));
      if (begin >= next_save) {
        dashboard_->save();
        next_save = begin + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(kSaveEverySeconds));
      }
    }
    return {};
  }

  bool finished(uint32_t frame) const {
    if (window_->should_close() || dashboard_->wants_close()) return true;
    if (script_ && script_->finished() && options_.frames == 0) return true;
    return options_.frames != 0 && frame > options_.frames;
  }

  double rate(const FramePacer& pacer) const {
    const double wanted = script_ ? script_->frames_per_s() : 0;
    return wanted > 0 ? wanted : pacer.frames_per_s(idle());
  }

  bool idle() const {
    return host_.view().new_steps.empty() && !host_.loading().active && !script_ &&
           !host_.animated();
  }

  Status draw_frame(uint32_t frame) {
    host_.update(static_cast<double>(ImGui::GetIO().DeltaTime));
    take_dropped_files();
    ItemLog::instance().begin_frame();
    window_->begin_frame();
    if (script_) script_->begin_frame();
    dashboard_->set_density(window_->density());
    ImGui::NewFrame();
    dashboard_->draw();
    ImGui::Render();

    std::optional<std::filesystem::path> screenshot;
    if (script_) {
      HEARTH_TRY(script_->advance(dashboard_->values().values(), seconds()));
      screenshot = script_->take_screenshot();
      if (script_->wants_close()) window_->close();
    }
    if (frame == options_.frames && !options_.screenshot.empty()) screenshot = options_.screenshot;
    return window_->minimized() ? Status{} : window_->show(screenshot);
  }

  void take_dropped_files() {
    std::vector<std::string> files = window_->take_dropped_files();
    if (script_)
      for (std::string& file : script_->take_dropped()) files.push_back(std::move(file));
    if (!files.empty()) host_.drop(files.back());
  }

  Status check_validation() {
    std::vector<std::string> messages = window_->take_validation_messages();
    if (Session* session = host_.session())
      for (std::string& message : session->instance().take_validation_messages())
        messages.push_back(std::move(message));
    if (messages.empty()) return {};
    return Error{ErrorKind::kInternal,
                 fmt::format("the validation layers reported {} message{}", messages.size(),
                             messages.size() == 1 ? "" : "s")};
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  const AppOptions& options_;
  const Clock::time_point started_ = Clock::now();
  ImGuiScope imgui_;
  Settings settings_;
  Theme theme_;
  std::unique_ptr<ScriptPlayer> script_;
  EngineHost host_;
  // Destroyed in reverse order: the window first, then the panels with their token streams, which
  // must not outlive the engine.
  std::unique_ptr<Dashboard> dashboard_;
  std::unique_ptr<Window> window_;
};

}  // namespace

Status run_app(const AppOptions& options) { return App(options).run(); }

}  // namespace hearth
