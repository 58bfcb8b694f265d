// Plans the steps of a model on a device: the program that its architecture emits, fused for a
// bucket. Pure, and needs only the header of a model's file. Any thread may use it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/model.h"
#include "engine/model/step_bucket.h"
#include "engine/program/plan.h"
#include "runtime/device_caps.h"

namespace hearth {

struct StepPlannerInfo {
  const DeviceCaps& caps;
  const ModelPlan& model;
  StepLimits limits;
  uint64_t matmul_scratch_bytes = 0;         // as allocated: see activation_sizes()
  bool fusion = true;                        // false: every op has its own kernels
  std::function<void(StepPlan&)> edit = {};  // called with every plan, for tests
};

// All ops of a step on this device, before any are fused.
std::vector<Op> step_ops(const ModelPlan& model, const StepBucket& bucket);

class StepPlanner {
 public:
  // REQUIRES: what `info` refers to outlives the planner.
  explicit StepPlanner(const StepPlannerInfo& info);

  StepPlan plan(const StepBucket& bucket) const { return plan(bucket, layers_); }
  // The same with only as many layers as it takes to use every pipeline of the step.
  StepPlan plan_distinct(const StepBucket& bucket) const { return plan(bucket, distinct_layers_); }

  // The distinct windows of the model's layers: attention_windows().
  const std::vector<uint32_t>& windows() const { return windows_; }

 private:
  StepPlan plan(const StepBucket& bucket, std::span<const uint32_t> layers) const;
  void find_distinct_layers();

  StepPlannerInfo info_;
  std::vector<uint32_t> windows_;
  std::vector<uint32_t> layers_, distinct_layers_;
};

}  // namespace hearth
