#include "engine/model/kv_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

// Planes are aligned for the widest loads of any kernel.
constexpr uint64_t kKvAlignment = 256;
uint64_t aligned(uint64_t bytes) { return round_up(bytes, kKvAlignment); }

// The planes of a layer: keys, values, and their scales if the format has them.
std::vector<uint32_t> layer_planes(const ModelConfig& config, KvFormat format) {
  const auto bytes =
      static_cast<uint32_t>(kv_block_bytes(format, config.kv_heads, config.head_size));
  const auto scales =
      static_cast<uint32_t>(kv_block_scale_bytes(format, config.kv_heads, config.head_size));
  if (scales == 0) return {bytes, bytes};
  return {bytes, bytes, scales, scales};
}

}  // namespace

uint64_t kv_bytes_per_block(const ModelConfig& config, KvFormat format) {
  uint64_t bytes = 0;
  for (const uint32_t plane : layer_planes(config, format)) bytes += plane;
  return bytes * config.held_layers();
}

uint64_t most_kv_blocks(const ModelConfig& config, KvFormat format, uint64_t allocation_bytes) {
  const uint64_t plane = std::ranges::max(layer_planes(config, format));
  return plane == 0 ? 0 : allocation_bytes / kKvAlignment * kKvAlignment / plane;
}

Result<KvCache> KvCache::create(Device& device, const ModelConfig& config, const Options& options) {
  KvCache cache;
  cache.format_ = options.format;
  cache.blocks_ = options.blocks;
  cache.first_layer_ = config.first_layer();
  const std::vector<uint32_t> planes = layer_planes(config, options.format);
  const uint64_t limit = device.caps().limits.max_allocation_bytes;

  // Packs planes one after the other into allocations of the largest possible size.
  std::vector<uint64_t> sizes(1, 0);
  for (uint32_t layer = 0; layer < config.held_layers(); ++layer) {
    for (const uint32_t block_bytes : planes) {
      const uint64_t bytes = aligned(uint64_t{block_bytes} * options.blocks);
      if (bytes > limit)
        return Error{
            ErrorKind::kOutOfMemory,
            fmt::format("{} KV blocks take {} per layer, but this device allocates at most "
                        "{} at once",
                        options.blocks, format_bytes(bytes), format_bytes(limit))};
      if (sizes.back() + bytes > limit) sizes.push_back(0);
      cache.planes_.push_back(
          {.allocation = sizes.size() - 1, .offset = sizes.back(), .block_bytes = block_bytes});
      sizes.back() += bytes;
    }
  }
  for (const uint64_t bytes : sizes) {
    HEARTH_ASSIGN(Buffer buffer, device.memory().allocate({.bytes = std::max(bytes, kKvAlignment),
                                                           .intent = options.intent,
                                                           .name = "KV blocks"}));
    cache.allocations_.push_back(std::move(buffer));
  }

  // Slices point to their buffers, which therefore must not move; moving the vector does not move
  // its elements.
  for (uint32_t layer = 0; layer < config.held_layers(); ++layer) {
    const auto slice = [&](size_t i) {
      const Plane& plane = cache.planes_[layer * planes.size() + i];
      return cache.allocations_[plane.allocation].slice(
          plane.offset, uint64_t{plane.block_bytes} * options.blocks);
    };
    PagedKv kv{.keys = slice(0), .values = slice(1)};
    if (planes.size() == 4) {
      kv.key_scales = slice(2);
      kv.value_scales = slice(3);
    }
    cache.layers_.push_back(kv);
  }
  return cache;
}

uint64_t KvCache::bytes() const {
  uint64_t bytes = 0;
  for (const Buffer& buffer : allocations_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace hearth
