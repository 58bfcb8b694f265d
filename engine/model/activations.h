// Scratch memory that the kernels of a step use, allocated once for the largest possible step.
// Sizes are a pure function, so that `hearth info` can compute them without a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/model/step_bucket.h"
#include "engine/model/weight_table.h"
#include "engine/ops/attention.h"
#include "runtime/buffer.h"
#include "runtime/result.h"

namespace hearth {

class Device;

// The sizes that a runner is created for.
struct StepLimits {
  uint32_t rows = 512;       // tokens per step
  uint32_t sequences = 16;   // per step, without candidates
  uint32_t candidates = 0;   // per step, each of which counts as a sequence more
  uint32_t logit_rows = 16;  // per step
  uint32_t context = 2048;   // tokens per sequence
  uint32_t masks = 0;        // token masks per step
  KvFormat kv = KvFormat::kF16;
  bool deterministic = false;
  // With a tensor split: in steps of this many rows or more, each rank norms only its share of the
  // rows (program/row_division.h). 0: never. The same on all ranks.
  uint32_t divided_rows = 0;

  uint32_t most_sequences() const { return sequences + candidates; }
};

// The shape of a bucket's attention.
AttentionShape step_attention_shape(const ModelConfig& config, KvFormat kv,
                                    const StepBucket& bucket, uint32_t context);

// Calls visit(size) for every size, up to `most`, that steps are recorded for.
template <class Visit>
void for_bucket_sizes(uint32_t most, Visit visit) {
  for (uint32_t size = 1; size < most; size = bucket_size(size + 1)) visit(size);
  visit(bucket_size(most));
}

// Calls visit(bucket) for the buckets that need the most memory within the limits, once per context
// size: attention over a short context may have more work items than over a long one.
template <class Visit>
void for_step_buckets(const StepLimits& limits, Visit visit) {
  const auto visit_contexts = [&](StepBucket bucket, bool trees = false) {
    bucket.trees = trees;
    for (uint64_t tokens = 1; tokens <= limits.context; tokens = uint64_t{bucket.context} + 1) {
      bucket.context = bucket_context(static_cast<uint32_t>(tokens));
      visit(bucket);
    }
  };
  for_bucket_sizes(limits.most_sequences(),
                   [&](uint32_t size) { visit_contexts(choose_bucket(size, size, 1, size)); });
  for_bucket_sizes(limits.rows, [&](uint32_t size) {
    // In a padded step, every sequence may have padding, which counts as another one.
    const StepBucket bucket =
        choose_bucket(size, std::min(size, limits.sequences + limits.most_sequences()), size,
                      std::min(size, limits.logit_rows));
    visit_contexts(bucket);
    visit_contexts(bucket, /*trees=*/true);
  });
}

// The matrix products of a model: one shape for each segment of a weight.
struct ModelMatmul {
  WeightFormat format = WeightFormat::kF32;
  uint32_t inputs = 0, outputs = 0;
  uint32_t sibling_outputs = 0;  // outputs of the weight's other segments
  bool of_logits = false;        // runs over logit rows only
  uint32_t experts = 0;          // that many matrices of this shape, one for each expert

  auto operator<=>(const ModelMatmul&) const = default;
};

// Without duplicates. REQUIRES: the table was checked against the file.
std::vector<ModelMatmul> model_matmuls(const WeightTable& table, const ModelFile& file);

struct ActivationSizes {
  uint64_t hidden = 0;     // [rows, width] f32
  uint64_t normed = 0;     // [rows, width] f32, or less in the form that a product reads
  uint64_t projected = 0;  // [rows, width] f32
  uint64_t picked = 0;     // [logit rows, width] f32
  uint64_t qkv = 0;        // [rows, q + k + v] f32
  uint64_t queries = 0;    // [rows, heads, head_size] f32, after rope
  uint64_t attended = 0;   // [rows, heads, head_size] f32, or less
  // [rows, heads, head_size + kAttentionStats] f32, if ranks share KV blocks
  uint64_t attention_sums = 0;
  uint64_t gate_up = 0;  // [rows, 2 * mlp_width] f32
  uint64_t mlp = 0;      // [rows, mlp_width] f32, or less
  uint64_t logits = 0;   // [logit rows, vocabulary] f32
  uint64_t routed = 0;   // [rows, experts] f32
  uint64_t matmul_scratch = 0, matmul_counts = 0, sampling_scratch = 0, sampling_counts = 0;
  uint64_t norm_state = 0;
  uint64_t attention_counts = 0, attention_partials = 0;

  uint64_t total() const {
    return hidden + normed + projected + picked + qkv + queries + attended + attention_sums +
           gate_up + mlp + logits + routed + matmul_scratch + matmul_counts + sampling_scratch +
           sampling_counts + norm_state + attention_counts + attention_partials;
  }
};

ActivationSizes activation_sizes(const DeviceCaps& caps, const ModelConfig& config,
                                 std::span<const ModelMatmul> matmuls, const StepLimits& limits);

struct Activations {
  static Result<Activations> allocate(Device& device, const ActivationSizes& sizes);
  // Kernels leave their counters at zero, unless they did not wait for each other (chain_guard.h).
  Status clear_counts(Device& device) const;

  Buffer hidden, normed, projected, picked, qkv, queries, attended, gate_up, mlp, logits, routed;
  Buffer attention_sums;
  Buffer matmul_scratch, sampling_scratch;
  Buffer norm_state;                      // of a norm that two products share
  Buffer matmul_counts, sampling_counts;  // zero between uses
  // Counts, which are zero between steps, then partial results.
  Buffer attention_scratch;
  uint64_t attention_count_bytes = 0;
  BufferSlice attention_counts() const { return attention_scratch.slice(0, attention_count_bytes); }
  BufferSlice attention_partials() const {
    return attention_scratch.slice(attention_count_bytes,
                                   attention_scratch.bytes() - attention_count_bytes);
  }
};

}  // namespace hearth
