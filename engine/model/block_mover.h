// Copies KV blocks on the GPU: within the device's pool for forks, and to and from host memory for
// swaps. Recorded once; each call fills in a list of pairs. For one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/command_recorder.h"
#include "runtime/gpu_timer.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"
#include "runtime/timeline.h"

namespace hearth {

class Device;

// What a mover has copied since it was created.
struct BlockTraffic {
  uint64_t bytes = 0;
  double seconds = 0;  // on the GPU's clock; 0 if the device has no timestamps
};

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

  // Waits for the copies in flight.
  Result<BlockTraffic> traffic();

 private:
  explicit BlockMover(Device& device) : device_(device) {}

  // Waits for the last submission, if it has not been waited for, and adds up its time.
  Status finish_last();

  static constexpr size_t kPairs = 64;  // most copies per submission

  Device& device_;
  Buffer pairs_;                     // [kPairs] CopyPair, written by the host
  std::vector<Buffer> planes_;       // CopyPlane lists, one per pair of allocations
  std::unique_ptr<GpuTimer> timer_;  // null if the device has no timestamps
  CommandBuffer commands_;
  TimelinePoint last_;        // no timeline: nothing is in flight
  uint64_t block_bytes_ = 0;  // of one block in all planes
  BlockTraffic traffic_;
};

}  // namespace hearth
