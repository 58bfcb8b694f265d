// The ops of a whole step: embedding, layers, final norm, logits, and what is done with hidden
// states. A step computes keys and values for all its rows, but only a few need logits: in the last
// layer those rows are picked after attention, and everything after that runs for them alone. A
// step that pools or keeps hidden states needs all rows up to the final norm, and picks after it. A
// step without logits ends with the last write to the KV cache.
//
// On a device that holds some of the layers only (engine/ranks), a step begins with the rows that
// enter them, and ends with a norm that only adds to the hidden state what is still to be added, as
// the next layer's first norm would. If devices divide every layer, their sums are ops of the step,
// and so is joining their logits. If they share KV blocks, merging their attention is, and all but
// the last end with it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/model/step_bucket.h"
#include "engine/program/builder.h"
#include "engine/program/op.h"
#include "engine/program/weight_shapes.h"

namespace hearth {

struct StepProgramInfo {
  const ModelConfig& config;
  const WeightShapes& weights;
  StepBucket bucket;
  // The layers to emit, ascending, the last one included. Usually all that the device holds.
  std::span<const uint32_t> layers;
  // Emits one layer, which reads and writes Value::kHidden.
  std::function<void(Builder&)> emit_layer;
  // Between sums, each rank has only its own rows (row_division.h), if the ops allow it.
  bool divides_rows = false;
};

std::vector<Op> step_program(const StepProgramInfo& info);

// Whether hidden states of rows are needed whose logits are not wanted.
inline bool needs_all_rows(const StepBucket& bucket) {
  return (bucket.extras & (kStepPools | kStepHidden)) != 0;
}

}  // namespace hearth
