// What no driver tells of its cooperative matrices.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

// Runs a small product to find out whether lanes hold fragments as
// shaders/common/fragment_lanes.glsl says, and notes it in the device's capabilities
// (lane_fragments). For whoever is going to choose kernels, before the first choice. Fails only
// where the device does.
Status check_fragments(Device& device, PipelineStore& pipelines);

// That product: small integers, which halves and f32 sums have exactly, and so drawn that rows or
// inputs in another lane than they should be give another result.
struct FragmentProduct {
  static constexpr uint32_t kRows = 16, kOutputs = 8, kInputs = 16;
  std::array<uint32_t, kRows * kInputs> x;          // [rows, inputs], 0 to 7
  std::array<uint32_t, kOutputs * kInputs> weight;  // [outputs, inputs], 0 to 7

  static FragmentProduct draw();
  std::array<float, kRows * kOutputs> result() const;           // [rows, outputs]
  std::array<float, kRows * kOutputs> result_by_lanes() const;  // [lanes, elements of each]
};

}  // namespace hearth
