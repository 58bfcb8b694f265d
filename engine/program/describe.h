// A plan as text that a person can read: what each op computes, what was fused into it, and the
// kernels that run it. Found by recording the plan without a device, so that it shows what a step
// really dispatches. For `hearth bench --explain` and for golden files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/plan.h"
#include "runtime/dispatch_log.h"
#include "runtime/result.h"

namespace hearth {

struct OpDescription {
  std::string_view part;
  uint32_t rows = 0;
  std::string formula;  // "qkv = weight * norm(hidden)"
  std::vector<LoggedDispatch> kernels;
};

// Consecutive layers that run the same kernels.
struct LayerDescription {
  std::optional<uint32_t> first_layer = {};  // none: before or after the layers
  uint32_t last_layer = 0;
  std::vector<OpDescription> ops;
};

// Fails if the plan cannot be recorded.
Result<std::vector<LayerDescription>> describe(const StepPlan& plan);

// For each kernel the part, the formula, and the kernel with the number of its workgroups and their
// size; below it those of its constants that are not 0.
std::string to_text(const std::vector<LayerDescription>& layers);

// "decode of 8 sequences, up to 191 tokens each; its kernels form a chain"
std::string step_text(const StepPlan& plan);

}  // namespace hearth
