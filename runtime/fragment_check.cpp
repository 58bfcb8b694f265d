#include "runtime/fragment_check.h"

#include <algorithm>
#include <random>
#include <span>

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
constexpr uint32_t kSubgroup = 32;

// Whether the device has such fragments, and this program the kernel.
bool can_run(const DeviceCaps& caps) {
  const CoopmatShape shape{.m = FragmentProduct::kRows,
                           .n = FragmentProduct::kOutputs,
                           .k = FragmentProduct::kInputs,
                           .a = ScalarType::kF16,
                           .b = ScalarType::kF16,
                           .c = ScalarType::kF32,
                           .result = ScalarType::kF32};
  return caps.features.coopmat && caps.features.float16 && caps.subgroup_size == kSubgroup &&
         std::ranges::find(caps.coopmat_shapes, shape) != caps.coopmat_shapes.end() &&
         find_shader(kKernel).ok();
}

void fill(const Buffer& buffer, std::span<const uint32_t> integers) {
  constexpr std::array<uint16_t, 8> kHalves = {0x0000, 0x3c00, 0x4000, 0x4200,
                                               0x4400, 0x4500, 0x4600, 0x4700};
  std::ranges::transform(integers, buffer.view<uint16_t>().begin(),
                         [&](uint32_t integer) { return kHalves[integer]; });
}

Result<bool> product_is_correct(Device& device, const Pipeline& pipeline) {
  const FragmentProduct product = FragmentProduct::generate();
  const auto result = product.result(), by_lanes = product.result_by_lanes();
  const auto allocate = [&](uint64_t bytes, MemoryIntent intent) {
    return device.memory().allocate({.bytes = bytes, .intent = intent, .name = "fragment check"});
  };
  HEARTH_ASSIGN(const Buffer x, allocate(product.x.size() * 2, MemoryIntent::kUpload));
  HEARTH_ASSIGN(const Buffer weight, allocate(product.weight.size() * 2, MemoryIntent::kUpload));
  HEARTH_ASSIGN(const Buffer y, allocate(2 * result.size() * 4, MemoryIntent::kReadback));
  fill(x, product.x);
  fill(weight, product.weight);
  HEARTH_TRY(x.flush());
  HEARTH_TRY(weight.flush());
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device));
  recorder.dispatch(
      {.pipeline = pipeline,
       .arguments = params::FragmentLanes{.x = x.all(), .weight = weight.all(), .y = y.all()},
       .groups = {.x = 1}});
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  HEARTH_TRY(device.compute().run(commands));
  HEARTH_TRY(y.invalidate());
  const std::span<const float> sums = y.view<float>();
  return std::ranges::equal(sums.first(result.size()), result) &&
         std::ranges::equal(sums.subspan(result.size(), by_lanes.size()), by_lanes);
}

}  // namespace

FragmentProduct FragmentProduct::generate() {
  FragmentProduct product;
  std::minstd_rand random;  // the same sequence on every platform
  for (uint32_t& integer : product.x) integer = static_cast<uint32_t>(random()) >> 20 & 7;
  for (uint32_t& integer : product.weight) integer = static_cast<uint32_t>(random()) >> 20 & 7;
  return product;
}

std::array<float, FragmentProduct::kRows * FragmentProduct::kOutputs> FragmentProduct::result()
    const {
  std::array<float, kRows* kOutputs> sums = {};
  for (uint32_t r = 0; r < kRows; ++r)
    for (uint32_t n = 0; n < kOutputs; ++n)
      for (uint32_t k = 0; k < kInputs; ++k)
        sums[r * kOutputs + n] += static_cast<float>(x[r * kInputs + k] * weight[n * kInputs + k]);
  return sums;
}

std::array<float, FragmentProduct::kRows * FragmentProduct::kOutputs>
FragmentProduct::result_by_lanes() const {
  const auto sums = result();
  std::array<float, kRows* kOutputs> elements = {};
  for (uint32_t i = 0; i < elements.size(); ++i) {
    const uint32_t lane = i / 4, row = lane / 4 + i % 4 / 2 * 8, output = lane % 4 * 2 + i % 2;
    elements[i] = sums[row * kOutputs + output];
  }
  return elements;
}

Status check_fragments(Device& device, PipelineStore& pipelines) {
  if (!can_run(device.caps())) return {};
  HEARTH_ASSIGN(const Pipeline* pipeline,
                pipelines.get({.kernel = kKernel, .constants = {}, .subgroup_size = kSubgroup}));
  HEARTH_ASSIGN(const bool right, product_is_correct(device, *pipeline));
  device.set_lane_fragments(right);
  return {};
}

}  // namespace hearth
