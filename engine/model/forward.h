// The operations from which architectures build a layer. A Forward records one step of a bucket:
// each call appends kernels that work on the step's activations, which have these names here:
//
//   h  [rows, width]              the hidden state, which runs through all layers
//   x  [rows, width]              h after a norm
//   a  [rows, heads, head_size]   the result of attention
//   m  [rows, mlp_width]          the hidden layer of the MLP
//   t  [rows, width]              a projection that is normed once more before it is added to h
//
// After the attention of the last layer only the rows whose logits are wanted are needed: from
// there on h and a contain only those. A step that pools or keeps hidden states needs all rows up
// to the final norm; there the reduction comes after it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model_config.h"
#include "engine/model/model_weights.h"
#include "engine/model/step_bucket.h"
#include "engine/model/step_inputs.h"
#include "engine/ops/attention.h"
#include "engine/ops/hidden_rows.h"
#include "engine/ops/matmul.h"
#include "engine/ops/rope.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

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
inline constexpr std::string_view kPooling = "pooling";
inline constexpr std::string_view kHiddenStates = "hidden states";
inline constexpr std::string_view kLogits = "logits";
inline constexpr std::string_view kSampling = "sampling";
}  // namespace step_part

// Everything a step is recorded from; all of it must outlive the recorded commands.
struct ForwardContext {
  const DeviceCaps& caps;
  PipelineStore& pipelines;
  const ModelConfig& config;
  const ModelWeights& weights;
  const Buffer& rope_table;
  const Buffer& window_rope_table;  // for layers with a window
  const Activations& activations;
  const KvCache& kv;
  const Buffer& inputs;       // a StepLayout
  const Buffer& sampled_ids;  // [slots] u32
  const std::vector<uint32_t>& windows;
  uint32_t context = 0;  // most tokens of a sequence
  bool deterministic = false;
};

class Forward {
 public:
  Forward(const ForwardContext& context, CommandRecorder& recorder, const StepBucket& bucket);

  const ModelConfig& config() const { return context_.config; }
  // Whether anything after attention is needed: false in the last layer if no logits are wanted.
  bool has_rows() const { return rows_ > 0; }
  // Whether hidden states of rows are needed whose logits are not wanted.
  bool needs_all_rows() const { return (bucket_.extras & (kStepPools | kStepHidden)) != 0; }

  // h = embedding[ids]
  Status embed();
  // x = norm(h), after adding to h what post_norm() left.
  Status norm(WeightRole weight, uint32_t layer = 0);
  // a = attention(rope(q), rope(k), v) with q, k, v from x; keys and values go to the cache. In the
  // last layer h and a are then reduced to the rows whose logits are wanted.
  Status attention(uint32_t layer);
  // h += weight * a
  Status add_attention_out(uint32_t layer);
  // m = activation(gate * x) . (up * x)
  Status mlp(uint32_t layer);
  // h += down * m
  Status add_mlp_out(uint32_t layer);
  // The same into t, for architectures that norm before they add: post_norm() computes t = norm(t),
  // which the next norm() adds to h.
  Status attention_out(uint32_t layer);
  Status mlp_out(uint32_t layer);
  Status post_norm(WeightRole weight, uint32_t layer);
  // The next three work on x after the final norm, which then has all rows.
  // sums[i] = the sum of x over the rows of the step's i-th range. REQUIRES: the bucket has
  // kStepPools.
  Status pool(const Buffer& sums);
  // Keeps rows of x, and compares others with what was kept. REQUIRES: the bucket has kStepHidden.
  Status keep_and_compare(const HiddenPages& pages, const Buffer& similarity);
  // Reduces x to the rows whose logits are wanted. REQUIRES: needs_all_rows().
  Status pick_normed();
  // Logits of all remaining rows, from x.
  Status logits();

 private:
  // The outputs of a weight with several segments follow each other in memory, each [rows,
  // outputs].
  struct Columns {
    BufferSlice slice;    // from row 0 to the last
    uint32_t stride = 0;  // floats from row to row
    uint32_t first = 0;   // first column of the segment
  };
  Columns columns(const Weight& weight, const Buffer& outputs, uint32_t first,
                  uint32_t count) const;
  // Rows that a product reads, in the form it prefers if the kernel that computes them can write
  // that.
  struct Rows {
    BufferSlice slice;
    RowForm form = RowForm::kFloats;
    std::optional<BufferSlice> norm_weight = {};  // the product norms them itself,
    std::optional<NormBetween> shared_norm = {};  // or finishes a norm that another product began
  };
  // The form that all segments of a weight prefer, if an earlier kernel can write it.
  RowForm form_for(const Weight& weight) const;
  MatmulPlan plan_for(const Weight& weight, const WeightSegment& segment) const;
  // Whether there is a single row, and all segments of the weight can norm it themselves.
  bool norms_row(const Weight& weight) const;
  // The norm between attention's output and the MLP, if the two products share its work.
  std::optional<NormBetween> norm_between(uint32_t layer) const;
  Matmul product(const WeightSegment& segment, const Rows& x) const;
  // Records the products of all segments and leaves partial sums, which the next kernel adds up.
  // Empty if that is not possible. Only for weights without a bias.
  Result<std::optional<MatmulParts>> matmul_parts(std::string_view part, const Weight& weight,
                                                  const Weight& bias, const Rows& x);
  // h += weight * x, or leaves partial sums for the next norm to add.
  Status add_product(std::string_view part, const Weight& weight, const Weight& bias,
                     const Rows& x);
  Status matmul(std::string_view part, const Weight& weight, const Weight* bias, const Rows& x,
                const Buffer& y, bool add_to_y, float soft_cap = 0);
  // Computes m in one kernel if possible; returns false if not.
  Result<bool> gated_mlp(const Weight& weight, RowForm form);
  // The weight whose product reads the result of a norm.
  const Weight* reader_of(WeightRole norm, uint32_t layer) const;
  const Weight& output_weight() const;
  // In a decode step, row i is the wanted row of sequence i; otherwise the wanted rows are
  // gathered.
  bool picks_rows(uint32_t layer) const {
    return bucket_.sequence_rows > 1 && layer + 1 == config().layers && !needs_all_rows();
  }
  // Reduces h and a to the wanted rows.
  Status pick_rows();
  // to = the wanted rows of `from`
  Status pick(const BufferSlice& from, const Buffer& to, uint32_t width);
  RopeKv rope_kv(uint32_t layer, const std::optional<MatmulParts>& parts) const;
  // All rows of an activation buffer, in `form` or as floats.
  BufferSlice rows_in(RowForm form, const Buffer& buffer, uint32_t width) const;
  BufferSlice rows_of(const Buffer& buffer, uint32_t width) const {
    return buffer.slice(0, uint64_t{rows_} * width * 4);
  }
  BufferSlice input(uint64_t offset, uint64_t bytes) const {
    return context_.inputs.slice(offset, bytes);
  }
  BufferSlice sequences() const;
  BufferSlice block_tables() const;

  const ForwardContext& context_;
  CommandRecorder& recorder_;
  StepBucket bucket_;
  AttentionShape attention_shape_;
  AttentionPlan attention_plan_;
  StepLayout layout_;
  uint32_t rows_;                            // rows of h
  const Buffer* hidden_;                     // h
  bool addend_ = false;                      // t has yet to be added to h
  std::optional<MatmulParts> addend_parts_;  // partial sums that have yet to be added to h
  std::optional<NormBetween> started_norm_;  // by the last product that was added to h
  Rows normed_, attended_, mlp_;             // x, a and m
};

}  // namespace hearth
