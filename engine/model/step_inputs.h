// Everything that changes from step to step, in one buffer: ids, sequences, block tables, sampling
// parameters, attention's work lists. The host writes directly to device memory, into one of two
// copies while the GPU may still read the other. Kernels use fixed places in a copy, so that
// recorded steps can be replayed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/model_config.h"
#include "engine/model/step_batch.h"
#include "engine/model/step_bucket.h"
#include "engine/model/step_layout.h"
#include "engine/ops/attention.h"
#include "runtime/buffer.h"
#include "runtime/result.h"

namespace hearth {

class Device;

// The most bytes that a step's words can take: masks, the tokens that all rows of another step
// commit, a proposal per row, and every row's stages and DRY penalties.
uint64_t step_word_bytes(const ModelConfig& config, const StepLimits& limits);

// The most bytes that any step within the limits needs, with block tables and then words.
uint64_t step_input_bytes(const DeviceCaps& caps, const ModelConfig& config,
                          const StepLimits& limits, size_t windows);

// The distinct windows of a model's layers, 0 for none. At most two.
std::vector<uint32_t> attention_windows(const ModelConfig& config);

class StepInputs {
 public:
  static constexpr size_t kCopies = 2;

  // `bytes` is the most that any step needs; the last `word_bytes` of them are for its words.
  // `deal` says which KV blocks are here.
  static Result<StepInputs> create(Device& device, uint64_t bytes, uint64_t word_bytes,
                                   const BlockDeal& deal);

  // Writes a step into a copy.
  // REQUIRES: the GPU no longer reads that copy; the batch fits the bucket.
  Status write(size_t copy, const StepBatch& batch, const StepBucket& bucket,
               const StepLayout& layout, const AttentionPlan& plan,
               const std::vector<uint32_t>& windows);

  const Buffer& buffer(size_t copy) const { return copies_[copy]; }
  // [StepBatch::words] u32, at the same place in every bucket.
  BufferSlice words(size_t copy) const { return copies_[copy].slice(tables_end_, word_bytes_); }

 private:
  std::array<Buffer, kCopies> copies_;
  AttentionPlanner planner_;
  BlockDeal deal_;
  DealtTables dealt_;
  uint64_t tables_end_ = 0, word_bytes_ = 0;
};

}  // namespace hearth
