// Where the time of a step goes: GPU time of each part beside what it must move and do.
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
  std::string part;     // of forward.h
  std::string kernels;  // that it is made of, joined by " + "
  uint32_t calls = 0;   // of kernels
  double seconds = 0;
  Cost cost;
  double share = 0;  // of the ceiling that binds
};

struct StepProfile {
  std::string test;  // "prompt" or "decode"
  uint32_t batch = 1, tokens = 0, context = 0;
  double step_seconds = 0;  // of the step as it is replayed, from submission to result
  std::vector<PartTime> parts;
};

// Sums spans by part, in the order in which parts first come.
std::vector<PartTime> time_parts(std::span<const GpuSpan> spans, const StepCosts& costs,
                                 const Ceilings& ceilings);

// Profiles one step of `batch` sequences with `rows` tokens each after `position` others. What the
// KV cache holds does not matter. REQUIRES: the session's engine was not started, and it has room.
Result<StepProfile> profile_step(Session& session, uint32_t batch, uint32_t position, uint32_t rows,
                                 const Ceilings& ceilings);

}  // namespace hearth
