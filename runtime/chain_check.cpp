#include "runtime/chain_check.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "params/chain_check.h"
#include "runtime/chain_guard.h"
#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "runtime/pipeline.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

constexpr uint32_t kLinks = 48;
// More workgroups than any GPU runs at once; a CPU runs a few, one after the other.
constexpr uint32_t kGpuGroups = 8192, kCpuGroups = 64;

Result<bool> chain_is_correct(Device& device, const Pipeline& pipeline) {
  const uint32_t groups = device.caps().type == DeviceType::kCpu ? kCpuGroups : kGpuGroups;
  const uint64_t count = uint64_t{groups} * params::kChainCheckGroup;
  std::array<Buffer, 3> buffers;  // the last for the host
  for (size_t i = 0; i < buffers.size(); ++i) {
    HEARTH_ASSIGN(buffers[i],
                  device.memory().allocate(
                      {.bytes = count * sizeof(float),
                       .intent = i == 2 ? MemoryIntent::kReadback : MemoryIntent::kActivations,
                       .name = "chain check"}));
  }
  HEARTH_ASSIGN(CommandRecorder recorder,
                CommandRecorder::begin(device, {.name = "chain check", .chained = true}));
  recorder.fill(buffers[0].all(), 0);
  for (uint32_t link = 0; link < kLinks; ++link) {
    const Buffer &from = buffers[link % 2], &to = buffers[(link + 1) % 2];
    // A neighbour, another workgroup, and one that ran half a dispatch earlier or later.
    const std::array<uint32_t, 3> distances = {1, params::kChainCheckGroup * 37,
                                               static_cast<uint32_t>(count / 2) + 7};
    recorder.dispatch({.pipeline = pipeline,
                       .arguments = params::ChainCheck{.from = from.all(),
                                                       .to = to.all(),
                                                       .distance = distances[link % 3],
                                                       .fresh = link / 2 % 2},
                       .groups = {.x = groups}});
  }
  recorder.copy(buffers[kLinks % 2].all(), buffers[2].all());
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  HEARTH_TRY(device.compute().run(commands));
  HEARTH_ASSIGN(const bool failed, device.chain().wait_failed());
  HEARTH_TRY(buffers[2].invalidate());
  return !failed && std::ranges::all_of(buffers[2].view<const float>().first(count),
                                        [](float x) { return x == static_cast<float>(kLinks); });
}

}  // namespace

Status check_chain(Device& device, PipelineStore& pipelines) {
  if (!device.chain().usable()) return {};
  HEARTH_ASSIGN(const Pipeline* pipeline,
                pipelines.get({.kernel = "chain_check", .constants = {}, .subgroup_size = 0}));
  HEARTH_ASSIGN(const bool correct, chain_is_correct(device, *pipeline));
  if (correct) return {};
  device.chain().turn_off();
  device.set_ordered_groups(false);
  log_line(
      fmt::format("{}: kernels do not wait for each other as they should with {}; there will "
                  "be barriers between them",
                  device.caps().name, device.caps().driver));
  return {};
}

}  // namespace hearth
