// How much CPU time a frame of the dashboard takes without the driver: all panels, fed with a
// recording of 64 sequences in a pool of 65,536 blocks, one new step per frame.
//   frame_bench [FRAMES [STEPS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <imgui.h>

#include "ui/dashboard.h"
#include "ui/data/settings.h"
#include "ui/fonts.h"

namespace hearth {
namespace {

constexpr uint32_t kSequences = 64, kBlocks = 65'536, kPromptTokens = 512, kLength = 1024;

// Requests of 64 sequences that decode; one ends and another arrives every 16 steps.
ViewHistory made_up_history(uint64_t steps) {
  ViewHistory history;
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
    history.add(view, 1);
  }
  return history;
}

void bench(uint64_t frames, uint64_t steps) {
  using Clock = std::chrono::steady_clock;
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DisplaySize = {1920, 1080};
  io.DeltaTime = 1.0f / 60;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
  load_fonts();
  {
    Settings settings{std::filesystem::path()};
    Theme theme;
    EngineHost host(nullptr);
    Dashboard dashboard(host, settings, theme);
    dashboard.use_view("engine");
    host.open_recording(made_up_history(steps));
    host.scrubber().seek(steps > frames ? steps - frames : 1);
    std::vector<double> milliseconds;
    for (uint64_t frame = 0; frame <= frames; ++frame) {
      const Clock::time_point begin = Clock::now();
      host.update(0);
      ImGui::NewFrame();
      dashboard.draw();
      ImGui::Render();
      milliseconds.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      host.scrubber().step(1);
    }
    std::printf("first frame, with all %llu steps: %.1f ms\n",
                static_cast<unsigned long long>(steps), milliseconds.front());
    milliseconds.erase(milliseconds.begin());
    std::ranges::sort(milliseconds);
    std::printf("a frame with one new step: median %.2f ms, p90 %.2f ms of %zu\n",
                milliseconds[milliseconds.size() / 2], milliseconds[milliseconds.size() * 9 / 10],
                milliseconds.size());
  }
  for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
    texture->SetTexID(ImTextureID_Invalid);
    texture->SetStatus(ImTextureStatus_Destroyed);
  }
  ImGui::DestroyContext();
}

}  // namespace
}  // namespace hearth

int main(int count, char** arguments) {
  const auto number = [&](int index, uint64_t otherwise) {
    return count > index ? std::strtoull(arguments[index], nullptr, 10) : otherwise;
  };
  hearth::bench(std::max<uint64_t>(number(1, 200), 1), std::max<uint64_t>(number(2, 5000), 2));
  return 0;
}
