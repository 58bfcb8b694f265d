// Records a planned step: walks the plan, binds its names to buffers, appends commands. Decides
// nothing; a plan that does not fit the buffers or the kernels is an error.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "engine/ops/experts.h"
#include "engine/ops/hidden_rows.h"
#include "engine/ops/paged_kv.h"
#include "engine/program/plan.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// The buffers behind a plan's names. All of them must outlive the recorded commands.
struct StepBuffers {
  std::array<const Buffer*, kValueCount> values = {};
  std::function<BufferSlice(const WeightName&, size_t segment)> weight;
  // With `bias`, which may be a weight that the file does not have.
  std::function<ExpertWeights(const WeightName& weight, const WeightName& bias)> experts;
  std::function<const PagedKv&(uint32_t layer)> cache;
  BufferSlice rope_table, window_rope_table;
  BufferSlice inputs;       // a StepLayout, with the block tables up to the end
  BufferSlice sampled_ids;  // u32: places of sampled ids, one per slot first
  BufferSlice matmul_scratch;
  BufferSlice matmul_counts;  // zero between uses
  BufferSlice norm_state;
  BufferSlice attention_counts, attention_partials;  // the counts are zero between uses
  // Only for steps that pool, keep or compare hidden states:
  BufferSlice pooled;      // [step_pools(), width] f32
  BufferSlice similarity;  // [logit rows, kComparisonParts] f32
  HiddenPages pages = {};
};

// `ops` are some or all of the plan's, without those at which ranks meet (segments.h).
Status record_plan(CommandRecorder& recorder, PipelineStore& pipelines, const StepPlan& plan,
                   std::span<const PlannedOp> ops, const StepBuffers& buffers);

}  // namespace hearth
