#include "runtime/fragment_check.h"

#include <algorithm>
#include <array>

#include "params/fragment_lanes.h"
#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/pipeline.h"
#include "runtime/queue.h"
#include "runtime/shader_library.h"

namespace hearth {
namespace {

constexpr const char* kKernel = "fragment_lanes";
constexpr uint32_t kSubgroup = 32, kRows = 16, kOutputs = 8, kInputs = 16;

// Whether the device has such fragments at all, and this program the kernel.
bool can_run(const DeviceCaps& caps) {
  const CoopmatShape shape{.m = kRows,
                           .n = kOutputs,
                           .k = kInputs,
                           .a = ScalarType::kF16,
                           .b = ScalarType::kF16,
                           .c = ScalarType::kF32,
                           .result = ScalarType::kF32};
  return caps.features.coopmat && caps.features.float16 && caps.subgroup_size == kSubgroup &&
         std::ranges::find(caps.coopmat_shapes, shape) != caps.coopmat_shapes.end() &&
         find_shader(kKernel).ok();
}

// Element i of an operand: a small integer, as halves and f32 sums have it exactly. No two rows are
// alike.
uint32_t element(uint32_t i) { return (i * i * 7 + i * 3 + i / kInputs * 5) % 8; }

void fill(const Buffer& buffer, uint32_t first) {
  constexpr std::array<uint16_t, 8> kHalves = {0x0000, 0x3c00, 0x4000, 0x4200,
                                               0x4400, 0x4500, 0x4600, 0x4700};
  for (uint32_t i = 0; uint16_t & half : buffer.view<uint16_t>())
    half = kHalves[element(first + i++)];
}

bool is_product(std::span<const float> y, uint32_t x_first, uint32_t weight_first) {
  for (uint32_t r = 0; r < kRows; ++r) {
    for (uint32_t n = 0; n < kOutputs; ++n) {
      uint32_t sum = 0;
      for (uint32_t k = 0; k < kInputs; ++k)
        sum += element(x_first + r * kInputs + k) * element(weight_first + n * kInputs + k);
      if (y[r * kOutputs + n] != static_cast<float>(sum)) return false;
    }
  }
  return true;
}

Result<bool> product_is_right(Device& device, const Pipeline& pipeline) {
  constexpr uint32_t kWeightFirst = 1000;
  const auto allocate = [&](uint64_t bytes, MemoryIntent intent) {
    return device.memory().allocate({.bytes = bytes, .intent = intent, .name = "fragment check"});
  };
  HEARTH_ASSIGN(const Buffer x, allocate(kRows * kInputs * 2, MemoryIntent::kUpload));
  HEARTH_ASSIGN(const Buffer weight, allocate(kOutputs * kInputs * 2, MemoryIntent::kUpload));
  HEARTH_ASSIGN(const Buffer y, allocate(kRows * kOutputs * 4, MemoryIntent::kReadback));
  fill(x, 0);
  fill(weight, kWeightFirst);
  HEARTH_TRY(x.flush());
  HEARTH_TRY(weight.flush());
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device));
  recorder.dispatch(
      {.pipeline = pipeline,
       .push =
           params::FragmentLanes{.x = x.address(), .weight = weight.address(), .y = y.address()},
       .groups = {.x = 1},
       .accesses = {reads(x.all()), reads(weight.all()), writes(y.all())}});
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  HEARTH_TRY(device.compute().run(commands));
  HEARTH_TRY(y.invalidate());
  return is_product(y.view<float>(), 0, kWeightFirst);
}

}  // namespace

Status check_fragments(Device& device, PipelineStore& pipelines) {
  if (!can_run(device.caps())) return {};
  HEARTH_ASSIGN(const Pipeline* pipeline,
                pipelines.get({.kernel = kKernel, .constants = {}, .subgroup_size = kSubgroup}));
  HEARTH_ASSIGN(const bool right, product_is_right(device, *pipeline));
  device.set_lane_fragments(right);
  return {};
}

}  // namespace hearth
