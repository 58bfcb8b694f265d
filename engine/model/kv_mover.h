// Moves positions within the KV pool as the first command of a step: what a step needs whose
// sequences keep a path of a tree (StepBatch::keep_path).
#pragma once

#include <vector>

#include "engine/model/kv_cache.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

class Device;

class KvMover {
 public:
  // REQUIRES: the pool outlives the mover, and the mover whatever it recorded.
  static Result<KvMover> create(Device& device, const KvCache& kv, uint32_t kv_heads);

  // `lists`: [count] params::KvMoveList, with pairs in `words`.
  Status record(CommandRecorder& recorder, PipelineStore& pipelines, const DeviceCaps& caps,
                const BufferSlice& lists, uint32_t count, const BufferSlice& words) const;

 private:
  struct Planes {
    const Buffer* allocation = nullptr;
    Buffer list;  // [count] params::KvPlane
    uint32_t count = 0;
  };
  std::vector<Planes> planes_;  // per allocation of the pool
  uint32_t kv_heads_ = 0;
};

}  // namespace hearth
