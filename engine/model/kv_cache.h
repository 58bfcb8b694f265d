// The pool of KV blocks on the device. It is only memory; the scheduler decides which sequence owns
// which block. A block holds kTokensPerBlock positions of one sequence in every layer that the
// device has.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/ops/paged_kv.h"
#include "runtime/buffer.h"
#include "runtime/result.h"

namespace hearth {

class Device;

// Bytes of one block in all layers of the device: keys, values and scales.
uint64_t kv_bytes_per_block(const ModelConfig& config, KvFormat format);
// The most blocks a pool can have if allocations have at most `allocation_bytes`: each plane of a
// layer must fit into one.
uint64_t most_kv_blocks(const ModelConfig& config, KvFormat format, uint64_t allocation_bytes);

class KvCache {
 public:
  struct Options {
    KvFormat format = KvFormat::kF16;
    uint32_t blocks = 0;
    MemoryIntent intent = MemoryIntent::kKv;  // kReadback: a pool in host memory, to swap to
  };
  // Uses as many allocations as the device's limit requires.
  static Result<KvCache> create(Device& device, const ModelConfig& config, const Options& options);

  // REQUIRES: the device holds the layer.
  const PagedKv& layer(uint32_t layer) const { return layers_[layer - first_layer_]; }
  uint32_t blocks() const { return blocks_; }
  KvFormat format() const { return format_; }
  uint64_t bytes() const;

  // Where blocks are, for copies. Pools of the same options have the same planes in the same
  // allocations.
  struct Plane {
    size_t allocation = 0;
    uint64_t offset = 0;
    uint32_t block_bytes = 0;
  };
  const std::vector<Plane>& planes() const { return planes_; }
  const std::vector<Buffer>& allocations() const { return allocations_; }

 private:
  KvFormat format_ = KvFormat::kF16;
  uint32_t blocks_ = 0;
  std::vector<Buffer> allocations_;
  std::vector<Plane> planes_;
  std::vector<PagedKv> layers_;  // those of the device
  uint32_t first_layer_ = 0;
};

}  // namespace hearth
