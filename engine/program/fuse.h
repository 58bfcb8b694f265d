// From a step's ops to its plan: which kernels run each op, and which ops are done by the kernels
// of others. A pure function, so tables of fake devices and golden files test it without a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/program/op.h"
#include "engine/program/plan.h"
#include "engine/program/weight_shapes.h"
#include "runtime/device_caps.h"

namespace hearth {

// Everything but the ops that a plan depends on.
struct FuseInput {
  const DeviceCaps& caps;
  const WeightShapes& weights;
  StepBucket bucket;
  AttentionShape attention;           // of all layers
  std::span<const uint32_t> windows;  // the distinct windows of the layers, in the layout's order
  uint32_t vocabulary = 0;
  uint64_t matmul_scratch_bytes = 0;  // of the buffer that products share
  bool meets_ranks = false;           // ModelConfig::meets_ranks()
  bool deterministic = false;         // a row's result does not depend on other rows
  bool fusion = true;                 // false: every op has its own kernels
};

StepPlan fuse(const FuseInput& input, std::span<const Op> ops);

}  // namespace hearth
