// Finds out what no driver reports about its cooperative matrices.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

// Runs a small product to find out whether lanes hold fragments as
// shaders/common/fragment_lanes.glsl describes, and stores the answer in the device's capabilities
// (lane_fragments). Call it before the first kernel is chosen. Fails only if the device does.
Status check_fragments(Device& device, PipelineStore& pipelines);

// That product: small integers, which are exact in f16 and in f32 sums, chosen so that rows or
// inputs in the wrong lane change the result.
struct FragmentProduct {
  static constexpr uint32_t kRows = 16, kOutputs = 8, kInputs = 16;
  std::array<uint32_t, kRows * kInputs> x;          // [rows, inputs], 0 to 7
  std::array<uint32_t, kOutputs * kInputs> weight;  // [outputs, inputs], 0 to 7

  static FragmentProduct generate();
  std::array<float, kRows * kOutputs> result() const;           // [rows, outputs]
  std::array<float, kRows * kOutputs> result_by_lanes() const;  // [lanes, elements of each]
};

}  // namespace hearth
