// The kernels that sample, and the memory that they need. engine/sampling/sampler.h has the op.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"

namespace hearth {

struct SamplingShape {
  uint32_t rows = 0, vocab = 0;
  bool greedy = false;  // is_plainly_greedy() of every row (engine/sampling/sampler.h)
  bool extras = false;  // rows may have paths, DRY penalties and masks
  bool stages = false;  // rows may have stages
};
inline constexpr uint32_t kMaxSamplingVocab = 524288;

// A row's sampled token does not depend on the plan.
struct SamplingPlan {
  KernelPlan scan;
  std::optional<KernelPlan> pick;     // none if all rows are greedy: the scan picks
  std::optional<KernelPlan> stages;   // only if the shape has them
  uint32_t chunks = 0, segments = 0;  // per row
  uint32_t chunk_tokens = 0;
  uint32_t tally_words = 0;    // per row; 0: one workgroup reads the row
  uint64_t chunk_bytes = 0;    // scratch memory for chunks, with stages also for their sums,
  uint64_t segment_bytes = 0;  // then for segments,
  uint64_t tally_bytes = 0;    // then for counts that workgroups share

  uint64_t scratch_bytes() const { return chunk_bytes + segment_bytes + tally_bytes; }
};

SamplingPlan choose_sampling(const DeviceCaps& caps, const SamplingShape& shape);

// Of a row without a limit on the number of tokens, about.
OpCost sampling_cost(const SamplingShape& shape);

// `commits`: capacity of the list.
KernelPlan choose_history_commit(const DeviceCaps& caps, uint32_t commits);
KernelPlan choose_mix_logits(const DeviceCaps& caps, const SamplingShape& shape);

}  // namespace hearth
