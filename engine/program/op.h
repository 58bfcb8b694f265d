// What a step computes: a list of ops over named values, as plain data. Ops know nothing of
// kernels, of how they are fused, or of addresses; fuse.h plans all that. They run in the order of
// the list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "engine/model/weight_table.h"
#include "engine/ops/experts.h"
#include "engine/ops/mlp.h"
#include "engine/ops/rope.h"

namespace hearth {

// The parts of a step, as profiles label them.
namespace step_part {
inline constexpr std::string_view kEmbed = "embed";
inline constexpr std::string_view kNorm = "norm";
inline constexpr std::string_view kQkv = "qkv";
inline constexpr std::string_view kRope = "rope";
inline constexpr std::string_view kAttention = "attention";
inline constexpr std::string_view kAttentionOut = "attention out";
inline constexpr std::string_view kGateUp = "gate and up";
inline constexpr std::string_view kActivation = "activation";
inline constexpr std::string_view kDown = "down";
inline constexpr std::string_view kRouter = "router";
inline constexpr std::string_view kExperts = "experts";
inline constexpr std::string_view kPooling = "pooling";
inline constexpr std::string_view kHiddenStates = "hidden states";
inline constexpr std::string_view kLogits = "logits";
inline constexpr std::string_view kSampling = "sampling";
inline constexpr std::string_view kRanks = "ranks";
}  // namespace step_part

// Named buffers of rows, f32 unless a plan says otherwise.
enum class Value : uint8_t {
  kHidden,     // [rows, width]: the hidden state, which runs through all layers
  kNormed,     // [rows, width]: the hidden state after a norm
  kProjected,  // [rows, width]: a projection that is normed before it is added to the hidden state
  kPicked,     // [logit rows, width]: rows of the hidden state whose logits are wanted
  kQkv,        // [rows, q + k + v], one segment of the weight after the other
  kQueries,    // [rows, heads, head_size]: queries after rope; then rows of `attended`
  kAttended,   // [rows, heads, head_size]: the result of attention
  kGateUp,     // [rows, 2 * mlp_width], one segment of the weight after the other
  kMlp,        // [rows, mlp_width]: the hidden layer of the MLP
  kLogits,     // [logit rows, vocabulary]
  kRouted,     // [rows, experts]: how well each expert suits a row
  // [rows, heads, head_size + kAttentionStats]: attention to the keys of one rank
  kAttentionSums,
};
inline constexpr size_t kValueCount = 12;

inline constexpr std::array<std::string_view, kValueCount> kValueNames = {
    "hidden",   "normed",  "projected", "picked", "qkv",    "queries",
    "attended", "gate_up", "mlp",       "logits", "routed", "attention_sums"};

inline std::string_view value_name(Value value) { return kValueNames[static_cast<size_t>(value)]; }

// The layer of ops before and after all layers.
inline constexpr uint32_t kNoLayer = ~0u;

// A weight of the model, by what it is for.
struct WeightName {
  WeightRole role = WeightRole::kEmbedding;
  uint32_t layer = 0;  // 0 for weights of the whole model

  auto operator<=>(const WeightName&) const = default;
};

// y[r] = weight[ids[r] - first] * scale, or 0 if the weight has no such row
struct EmbedOp {
  Value y = Value::kHidden;
  WeightName weight;
  float scale = 1;
  uint32_t first = 0;
};

// y = x / sqrt(mean of x^2 + epsilon) * weight
struct NormOp {
  Value y = Value::kNormed, x = Value::kHidden;
  WeightName weight;
  uint32_t width = 0;
  float epsilon = 0;
};

// y += x
struct AddOp {
  Value y = Value::kHidden, x = Value::kProjected;
  uint32_t width = 0;
};

// y = cap(weight * x + bias), or y += weight * x + bias. A bias that the file does not have is left
// out.
struct ProductOp {
  Value y = Value::kHidden, x = Value::kNormed;
  WeightName weight;
  std::optional<WeightName> bias = {};
  bool adds = false;
  float soft_cap = 0;  // 0: none
};

// queries = rope(norm(q)); rope(norm(k)) and v go to the layer's KV cache.
struct RopeKvOp {
  Value q = Value::kQueries, qkv = Value::kQkv;
  WeightName weight;  // the one that computed qkv
  std::optional<WeightName> q_norm = {}, k_norm = {};
  RopeKvShape shape;          // `rows`, `kv`, `parts` and `trees` are set by the plan
  bool window_table = false;  // uses the frequencies of layers with a window
  float epsilon = 0;          // of the head norms
};

// y = attention(queries, the layer's KV cache), or, if KV blocks are dealt over ranks, the sums of
// this rank's keys, and 0 for rows without any.
struct AttentionOp {
  Value y = Value::kAttended, q = Value::kQueries;
  uint32_t width = 0;   // heads * head_size
  uint32_t window = 0;  // 0: none
  float scale = 1;
  float soft_cap = 0;                    // 0: none
  std::optional<WeightName> sinks = {};  // a logit of each head without a key
};

// y = activation(gate) * up, where x holds the outputs of the weight that computes gate and up.
struct ActivationOp {
  Value y = Value::kMlp, x = Value::kGateUp;
  WeightName weight;
  uint32_t width = 0;
  MlpActivation activation = MlpActivation::kSilu;
};

// y += the sum of the experts that `routed` chooses for each row of x, with their weights
// (ops/experts.h). Biases that the file does not have are left out.
struct ExpertsOp {
  Value y = Value::kHidden, x = Value::kNormed, routed = Value::kRouted;
  WeightName gate_up, gate_up_bias, down, down_bias;
  ExpertsShape shape;  // `rows` and the formats are set by the plan
};

// y = the rows of x whose logits are wanted
struct PickOp {
  Value y = Value::kPicked, x = Value::kHidden;
  uint32_t width = 0;
  uint32_t source_rows = 0;
};

// The step's pooled rows: sums of x over the step's ranges.
struct PoolOp {
  Value x = Value::kNormed;
  uint32_t width = 0;
  uint32_t ranges = 0;
};

// Keeps rows of x from step to step.
struct KeepOp {
  Value x = Value::kNormed;
  uint32_t width = 0;
};

// Compares rows of x with what was kept.
struct CompareOp {
  Value x = Value::kNormed;
  uint32_t width = 0;
  uint32_t comparisons = 0;
};

// y = 0
struct ClearOp {
  Value y = Value::kHidden;
  uint32_t width = 0;
};

// Ranks meet within a step (engine/ranks). No kernel does the next four: the step's
// commands end before them, and go on after them.

// y = the sum of all ranks' y, on all ranks. If the step's rows are divided (row_division.h), each
// rank gets only the sum of its own rows, which are then the first rows of y.
struct SumOp {
  Value y = Value::kHidden;
  uint32_t width = 0;
  bool adds = false;      // the first rank's y includes what y was before
  uint32_t own_rows = 0;  // 0: all rows
};

// y = the rows of all ranks one after the other, on all ranks; each comes with its own ones.
struct GatherOp {
  Value y = Value::kNormed;
  uint32_t width = 0;
  uint32_t own_rows = 0;
};

// y = the columns of all ranks' y side by side, on the rank that samples. The others end here.
struct JoinOp {
  Value y = Value::kLogits;
  uint32_t width = 0, joined_width = 0;  // of this rank, and of all together
};

// y = attention to the keys of all ranks, from all ranks' sums x, on all ranks or only on the one
// that samples, where the others end.
struct MergeOp {
  Value y = Value::kAttended, x = Value::kAttentionSums;
  uint32_t heads = 0, head_size = 0;
  bool on_last = false;
};

struct Op {
  std::string_view part;  // a name of step_part
  uint32_t layer = 0;     // of the model, or kNoLayer
  uint32_t rows = 0;      // that it computes
  std::variant<EmbedOp, NormOp, AddOp, ProductOp, RopeKvOp, AttentionOp, ActivationOp, ExpertsOp,
               PickOp, PoolOp, KeepOp, CompareOp, ClearOp, SumOp, GatherOp, JoinOp, MergeOp>
      what;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&what);
  }
};

}  // namespace hearth
