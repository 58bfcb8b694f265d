// Everything that changes from step to step, in one device buffer: ids, sequences, block tables,
// sampling parameters, attention's work lists. The host writes one of two staging copies while the
// GPU may still read the other; a recorded copy brings it over. Kernels see fixed places, so that
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
#include "engine/ops/attention.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/result.h"

namespace hearth {

class Device;

// Where things lie in the buffer, for a bucket.
struct StepLayout {
  uint64_t ids = 0;            // [rows] u32
  uint64_t row_sequences = 0;  // [rows] u32
  uint64_t sequences = 0;      // [sequences] StepSequence
  uint64_t logit_rows = 0;     // [logit rows] u32
  uint64_t sampling = 0;       // [logit rows] SamplingRow
  struct Lists {
    uint64_t few = 0, many = 0;
  };
  std::array<Lists, 2> attention = {};  // by window: see attention_windows()
  uint64_t block_tables = 0;            // u32, the last: as many as there are
};

StepLayout step_layout(const StepBucket& bucket, const AttentionCapacity& capacity, size_t windows);

// The most that any step within the limits takes, block tables included.
uint64_t step_input_bytes(const DeviceCaps& caps, const ModelConfig& config,
                          const StepLimits& limits, size_t windows);

// The windows of a model's layers, each once: 0 for none. At most two.
std::vector<uint32_t> attention_windows(const ModelConfig& config);

class StepInputs {
 public:
  static constexpr size_t kStagingCopies = 2;

  // `bytes` is the most that any step takes: layout and block tables.
  static Result<StepInputs> create(Device& device, uint64_t bytes);

  // Writes a step into staging copy `copy` and returns the bytes to be brought over.
  // REQUIRES: the GPU no longer reads that copy; the batch fits the bucket.
  Result<uint64_t> write(size_t copy, const StepBatch& batch, const StepBucket& bucket,
                         const StepLayout& layout, const AttentionPlan& plan,
                         const std::vector<uint32_t>& windows);
  // Commands that bring over at least `bytes` of a copy: the next power of two.
  const CommandBuffer& upload(size_t copy, uint64_t bytes) const;

  const Buffer& buffer() const { return device_buffer_; }

 private:
  Status record_uploads(Device& device);

  Buffer device_buffer_;
  std::array<Buffer, kStagingCopies> staging_;
  // For sizes that double, all recorded at once, so that no step has to.
  std::array<std::vector<CommandBuffer>, kStagingCopies> uploads_;
  AttentionPlanner planner_;
};

}  // namespace hearth
