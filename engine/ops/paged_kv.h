// One layer's paged KV cache as ops see it; shaders/params/paged_kv.h has the layout.
#pragma once

#include <cstdint>
#include <string_view>

#include "params/paged_kv.h"
#include "runtime/buffer.h"
#include "runtime/rounding.h"

namespace hearth {

enum class KvFormat : uint8_t { kF16, kQ8_0 };

// The name of the format in the kernels' axis `kv`.
inline std::string_view kv_format_name(KvFormat format) {
  return format == KvFormat::kF16 ? "f16" : "q8_0";
}

struct PagedKv {
  BufferSlice keys, values;              // [blocks, kv_heads, kTokensPerBlock, head_size]
  BufferSlice key_scales, value_scales;  // f16, one per kScaleWeights elements; only with Q8_0
};

// Bytes of the keys (or values) and of their scales, per block and layer.
inline uint64_t kv_block_bytes(KvFormat format, uint32_t kv_heads, uint32_t head_size) {
  const uint64_t elements = uint64_t{kv_heads} * params::kTokensPerBlock * head_size;
  return format == KvFormat::kF16 ? elements * 2 : elements;
}
inline uint64_t kv_block_scale_bytes(KvFormat format, uint32_t kv_heads, uint32_t head_size) {
  const uint32_t runs = divide_up(head_size, params::kScaleWeights);
  return format == KvFormat::kF16 ? 0 : uint64_t{kv_heads} * params::kTokensPerBlock * runs * 2;
}

// Bytes of the keys and values of one token and layer, with their scales.
inline double kv_token_bytes(KvFormat format, uint32_t kv_heads, uint32_t head_size) {
  const uint64_t bytes = kv_block_bytes(format, kv_heads, head_size) +
                         kv_block_scale_bytes(format, kv_heads, head_size);
  return 2.0 * static_cast<double>(bytes) / params::kTokensPerBlock;
}

}  // namespace hearth
