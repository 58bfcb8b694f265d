// Where the time of a step goes: the GPU time of each part, and what it must move and compute.
#pragma once

#include <string>
#include <vector>

#include "engine/session.h"
#include "runtime/gpu_timer.h"
#include "runtime/result.h"
#include "tools/bench/kernel_bench.h"
#include "tools/bench/step_cost.h"

namespace hearth {

struct PartTime {
  std::string part;     // as program/op.h names it
  std::string kernels;  // that it consists of, joined by " + "
  uint32_t calls = 0;   // of kernels
  double seconds = 0;
  Cost cost;
  CeilingShare ceiling;
};

struct StepProfile {
  std::string test;  // "prompt" or "decode"
  uint32_t batch = 1, tokens = 0, context = 0;
  double step_seconds = 0;  // of the step as the engine replays it, from submission to result
  std::vector<PartTime> parts;
};

// Sums spans by part, in the order in which the parts first occur.
std::vector<PartTime> time_parts(std::span<const GpuSpan> spans, const PartCosts& costs,
                                 const Ceilings& ceilings);

// Profiles one step of `batch` sequences with `rows` tokens each, after `position` others. The
// contents of the KV cache do not matter. REQUIRES: the session's engine was not started, and the
// session has room for the step.
Result<StepProfile> profile_step(Session& session, uint32_t batch, uint32_t position, uint32_t rows,
                                 const Ceilings& ceilings);

}  // namespace hearth
