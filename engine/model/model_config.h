// A decoder-only transformer in numbers: everything the architecture reads from the file and the
// forward pass, the memory plan and the KV cache need. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/layer_range.h"
#include "engine/model/tensor_shard.h"
#include "engine/ops/block_deal.h"
#include "engine/ops/mlp.h"
#include "engine/ops/rope.h"
#include "engine/ops/rope_table.h"

namespace hearth {

// Rope frequencies together with the lists they refer to.
struct RopeConfig {
  RopeTableInfo info;  // `dims`, `factors` and `long_factors` are set when it is used
  std::vector<float> factors, long_factors;  // [rope_dims / 2]
};

struct ModelConfig {
  std::string architecture;
  uint32_t layers = 0;
  LayerRange held;  // the layers on this device; other ranks hold the others (engine/ranks)
  // If every layer is divided over ranks: heads, KV heads and MLP columns are those of this device,
  // and so are held_tokens rows of the embedding and the output matrix, from first_token on.
  TensorShard shard;
  uint32_t first_token = 0, held_tokens = 0;
  BlockDeal deal;  // if ranks share a pool of KV blocks, the one of them that this device is
  uint32_t width = 0;
  uint32_t heads = 0, kv_heads = 0, head_size = 0;
  uint32_t mlp_width = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;  // most tokens the model was trained for

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
  bool f32_attention = false;    // for models with F32 matrices: uses f16 only in the cache
  float logit_soft_cap = 0;      // 0: none

  uint32_t window = 0;                  // tokens that layers with a window attend to
  std::vector<bool> windowed;           // per layer; empty: no layer has a window
  std::vector<RopeConfig> window_rope;  // one entry if layers with a window have their own

  // A mixture of experts instead of one MLP; `mlp_width` is then that of an expert.
  uint32_t experts = 0, used_experts = 0;
  bool split_experts = false;       // the file has a tensor for each expert
  bool weights_over_all = false;    // an expert's weight is its share of all, not of the used ones
  bool limited_activation = false;  // gpt-oss's
  bool attention_sinks = false;     // every head has a logit without a key

  bool layer_is_windowed(uint32_t layer) const { return !windowed.empty() && windowed[layer]; }
  uint32_t layer_window(uint32_t layer) const { return layer_is_windowed(layer) ? window : 0; }
  uint32_t first_layer() const { return std::min(held.first, layers); }
  uint32_t end_layer() const { return std::min(held.last, layers); }  // one after the last
  uint32_t held_layers() const { return end_layer() - first_layer(); }
  bool has_input() const { return first_layer() == 0; }      // embeds tokens
  bool has_output() const { return end_layer() == layers; }  // has the last layer
  // Whether logits are computed here: ranks that share KV blocks compute the same, so the last one
  // is enough.
  bool has_logits() const { return has_output() && deal.is_last(); }
  // Whether logits of the whole vocabulary are here. With a divided vocabulary, they are joined on
  // the last rank.
  bool samples() const { return has_logits() && shard.is_last(); }
  // Whether ranks exchange something within a step.
  bool meets_ranks() const { return shard.is_divided() || deal.is_divided(); }
  uint32_t q_width() const { return heads * head_size; }
  uint32_t kv_width() const { return kv_heads * head_size; }
};

}  // namespace hearth
