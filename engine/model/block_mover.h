// Copies KV blocks on the GPU: within the device's pool for forks, and to and from host memory for
// swaps. Recorded once; each call fills in a list of pairs. For one thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"
#include "runtime/timeline.h"

namespace hearth {

class Device;

class BlockMover {
 public:
  // REQUIRES: both pools, which may be the same one, outlive the mover.
  static Result<std::unique_ptr<BlockMover>> create(Device& device, PipelineStore& pipelines,
                                                    const KvCache& from, const KvCache& to);
  BlockMover(const BlockMover&) = delete;
  BlockMover& operator=(const BlockMover&) = delete;

  // Submits the copies; they run before anything submitted later. REQUIRES: no block is the target
  // of one pair and part of another.
  Status move(std::span<const BlockMove> pairs);

 private:
  explicit BlockMover(Device& device) : device_(device) {}

  static constexpr size_t kPairs = 64;  // most copies per submission

  Device& device_;
  Buffer pairs_;                // [kPairs] CopyPair, written by the host
  std::vector<Buffer> planes_;  // CopyPlane lists, one per pair of allocations
  CommandBuffer commands_;
  TimelinePoint last_;
};

}  // namespace hearth
