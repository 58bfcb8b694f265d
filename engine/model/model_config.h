// A decoder-only transformer in numbers: all that its architecture read from the file and that the
// forward pass, the memory estimate and the KV cache need. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/kernel_choice.h"
#include "engine/ops/rope_table.h"

namespace hearth {

// Frequencies with the lists they refer to.
struct RopeConfig {
  RopeTableInfo info;  // `dims`, `factors` and `long_factors` are filled in late
  std::vector<float> factors, long_factors;  // [rope_dims / 2]
};

struct ModelConfig {
  std::string architecture;
  uint32_t layers = 0;
  uint32_t width = 0;
  uint32_t heads = 0, kv_heads = 0, head_size = 0;
  uint32_t mlp_width = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;  // the longest sequence the model was made for

  float norm_epsilon = 1e-5f;
  float norm_offset = 0;  // added to norm weights while loading
  float embed_scale = 1;
  MlpActivation activation = MlpActivation::kSilu;

  RopePairs rope_pairs = RopePairs::kHalves;
  uint32_t rope_dims = 0;
  RopeConfig rope;
  bool head_norms = false;  // RMS norms of q and k

  float attention_scale = 0;
  float attention_soft_cap = 0;  // 0: none
  bool f32_attention = false;    // no f16 but in the cache: matrices are in F32, which is for that
  float logit_soft_cap = 0;      // 0: none

  uint32_t window = 0;                  // tokens a windowed layer sees
  std::vector<bool> windowed;           // by layer; empty: none is
  std::vector<RopeConfig> window_rope;  // one entry where windowed layers turn at another rate

  bool layer_is_windowed(uint32_t layer) const { return !windowed.empty() && windowed[layer]; }
  uint32_t layer_window(uint32_t layer) const { return layer_is_windowed(layer) ? window : 0; }
  uint32_t q_width() const { return heads * head_size; }
  uint32_t kv_width() const { return kv_heads * head_size; }
};

}  // namespace hearth
