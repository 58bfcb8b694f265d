// How much CPU time a frame of the dashboard takes without the driver: all panels, fed with a
// recording of 64 sequences in a pool of 65,536 blocks, one new step per frame.
//   frame_bench [FRAMES [STEPS]]
// Or the timeline alone, scrolled through 20,000 steps and painted by the CPU as where there is no
// GPU; presenting comes on top of it:
//   frame_bench scroll [FRAMES [PIXELS PER STEP]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include <imgui.h>

#include "ui/dashboard.h"
#include "ui/data/painter.h"
#include "ui/data/settings.h"
#include "ui/data/timeline_data.h"
#include "ui/fonts.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr uint32_t kSequences = 64, kBlocks = 65'536, kPromptTokens = 512, kLength = 1024;

// Requests of 64 sequences that decode; one ends and another arrives every 16 steps. Calls `take`
// with the view after each step.
template <class Take>
void make_up_steps(uint64_t steps, Take take) {
  EngineView view;
  view.connected = true;
  view.limits = {.max_sequences = kSequences, .max_step_tokens = 512, .context = 8192};
  view.has_snapshot = true;
  view.blocks.resize(kBlocks);
  view.sequences.resize(kSequences);
  for (uint32_t i = 0; i < kSequences; ++i)
    view.sequences[i] = {.id = i + 1,
                         .state = SequenceState::kRunning,
                         .prompt_tokens = kPromptTokens,
                         .computed = kPromptTokens + i * 8,
                         .max_tokens = kLength,
                         .blocks = kLength / kTokensPerBlock};
  for (uint64_t step = 1; step <= steps; ++step) {
    StepRecord record;
    record.step = step;
    record.end_seconds = 0.02 * static_cast<double>(step);
    record.begin_seconds = record.end_seconds - 0.02;
    record.run_seconds = 0.018;
    record.plan_seconds = 0.0005;
    for (uint32_t i = 0; i < kSequences; ++i) {
      SequenceView& sequence = view.sequences[i];
      if (++sequence.computed >= kLength) {
        record.finished.push_back(sequence.id);
        sequence.id += kSequences;
        sequence.computed = kPromptTokens;
        record.arrived.push_back({.request = sequence.id,
                                  .seconds = record.begin_seconds,
                                  .prompt_tokens = kPromptTokens,
                                  .max_tokens = kLength});
      }
      record.members.push_back({.request = sequence.id,
                                .slot = i,
                                .first_position = sequence.computed - 1,
                                .tokens = 1,
                                .samples = true});
      const uint32_t block = i * (kBlocks / kSequences) + sequence.computed / kTokensPerBlock;
      view.blocks[block] = {.state = BlockState::kOwned,
                            .owner = sequence.id,
                            .references = 1,
                            .filled = sequence.computed % kTokensPerBlock + 1,
                            .last_use = step};
    }
    record.tokens = record.sampled_tokens = kSequences;
    record.counts.running = kSequences;
    view.counts = record.counts;
    view.now = record.end_seconds;
    view.snapshot_step = step;
    view.new_steps = {record};
    take(view);
  }
}

ViewHistory made_up_history(uint64_t steps) {
  ViewHistory history;
  make_up_steps(steps, [&](const EngineView& view) { history.add(view, 1); });
  return history;
}

// How long this thread has kept a core busy, so that other programs do not count.
double core_milliseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// ImGui without a window.
class Screen {
 public:
  Screen(float width, float height) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {width, height};
    io.DeltaTime = 1.0f / 60;
    io.BackendFlags |=
        ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;
    load_fonts();
  }
  ~Screen() {
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    }
    ImGui::DestroyContext();
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
};

void print_times(const char* what, std::vector<double> milliseconds) {
  std::ranges::sort(milliseconds);
  std::printf("%s: median %.2f ms, p90 %.2f ms of %zu\n", what,
              milliseconds[milliseconds.size() / 2], milliseconds[milliseconds.size() * 9 / 10],
              milliseconds.size());
}

void bench(uint64_t frames, uint64_t steps) {
  const Screen screen(1920, 1080);
  Settings settings{std::filesystem::path()};
  Theme theme;
  EngineHost host(nullptr);
  Dashboard dashboard(host, settings, theme);
  dashboard.use_view("engine");
  host.open_recording(made_up_history(steps));
  host.scrubber().seek(steps > frames ? steps - frames : 1);
  std::vector<double> milliseconds;
  for (uint64_t frame = 0; frame <= frames; ++frame) {
    const double begin = core_milliseconds();
    host.update(0);
    ImGui::NewFrame();
    dashboard.draw();
    ImGui::Render();
    milliseconds.push_back(core_milliseconds() - begin);
    host.scrubber().step(1);
  }
  std::printf("first frame, with all %llu steps: %.1f ms\n", static_cast<unsigned long long>(steps),
              milliseconds.front());
  milliseconds.erase(milliseconds.begin());
  print_times("a frame with one new step", std::move(milliseconds));
}

void paint(const ImDrawData& data, Painter& painter, const PaintBox& all) {
  for (ImTextureData* texture : *data.Textures)
    if (texture->Status != ImTextureStatus_OK) {
      texture->SetTexID(1);
      texture->SetStatus(ImTextureStatus_OK);
    }
  painter.fill(all, IM_COL32_BLACK);
  for (const ImDrawList* list : data.CmdLists)
    for (const ImDrawCmd& command : list->CmdBuffer) {
      const ImTextureData* const texture = command.TexRef._TexData;
      const PaintMask mask{.texels = texture->Pixels + texture->BytesPerPixel - 1,
                           .width = texture->Width,
                           .height = texture->Height,
                           .step = texture->BytesPerPixel};
      const ImVec4& clip = command.ClipRect;
      painter.draw({reinterpret_cast<const PaintVertex*>(list->VtxBuffer.Data) + command.VtxOffset,
                    static_cast<size_t>(list->VtxBuffer.Size) - command.VtxOffset},
                   {list->IdxBuffer.Data + command.IdxOffset, command.ElemCount}, mask,
                   PaintBox{static_cast<int>(clip.x), static_cast<int>(clip.y),
                            static_cast<int>(clip.z), static_cast<int>(clip.w)}
                       .cut(all));
    }
}

void scroll(uint64_t frames, double pixels_per_step) {
  constexpr int kWidth = 1600, kHeight = 700;
  const Screen screen(kWidth, kHeight);
  ImGuiIO& io = ImGui::GetIO();
  Settings settings{std::filesystem::path()};
  Theme theme;
  apply_theme(theme);
  EngineHost host(nullptr);
  EngineView view;
  std::vector<StepRecord> steps;
  make_up_steps(TimelineData::kColumns, [&](const EngineView& now) {
    steps.push_back(now.new_steps.front());
    if (steps.size() == TimelineData::kColumns) view = now;
  });
  view.new_steps = std::move(steps);
  Selection selection;
  const PanelContext context{view, host, settings, theme, selection};
  std::unique_ptr<Panel> timeline;
  for (std::unique_ptr<Panel>& panel : PanelRegistration::make_all())
    if (panel->info().key == "timeline") timeline = std::move(panel);
  std::vector<uint32_t> pixels(size_t{kWidth} * kHeight);
  Painter painter({.pixels = pixels.data(), .width = kWidth, .height = kHeight}, 1);
  std::vector<double> milliseconds, painting;
  constexpr uint64_t kPrepare = 40;  // frames that zoom
  for (uint64_t frame = 0; frame < frames + kPrepare; ++frame) {
    io.AddMousePosEvent(kWidth / 2, kHeight / 2);
    // Eight pixels per step at first. The wheel zooms by a quarter and scrolls by a twelfth.
    const bool zooms = frame < kPrepare && frame > 4 &&
                       8 / std::pow(1.25, static_cast<double>(frame - 4)) > pixels_per_step;
    io.AddKeyEvent(ImGuiMod_Ctrl, zooms);
    if (zooms)
      io.AddMouseWheelEvent(0, -1);
    else if (frame > kPrepare)
      io.AddMouseWheelEvent(frame / 100 % 2 == 0 ? 1.0f : -1.0f, 0);
    const double begin = core_milliseconds();
    ImGui::NewFrame();
    timeline->update(context);
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(io.DisplaySize);
    ImGui::Begin("timeline", nullptr, ImGuiWindowFlags_NoDecoration);
    timeline->draw(context);
    ImGui::End();
    ImGui::Render();
    const double drawn = core_milliseconds();
    paint(*ImGui::GetDrawData(), painter, {0, 0, kWidth, kHeight});
    view.new_steps.clear();
    if (frame < kPrepare) continue;
    milliseconds.push_back(drawn - begin);
    painting.push_back(core_milliseconds() - drawn);
  }
  print_times("a frame of the timeline", std::move(milliseconds));
  print_times("painting it", std::move(painting));
}

}  // namespace
}  // namespace hearth

int main(int count, char** arguments) {
  const bool scrolls = count > 1 && std::strcmp(arguments[1], "scroll") == 0;
  const auto number = [&](int index, double otherwise) {
    index += scrolls ? 1 : 0;
    return count > index ? std::strtod(arguments[index], nullptr) : otherwise;
  };
  const auto frames = static_cast<uint64_t>(std::max(number(1, 200), 1.0));
  if (scrolls)
    hearth::scroll(frames, std::max(number(2, 8), 0.25));
  else
    hearth::bench(frames, static_cast<uint64_t>(std::max(number(2, 5000), 2.0)));
  return 0;
}
