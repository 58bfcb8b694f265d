// The vocabulary in which architectures write down a layer. A Forward records one step of a bucket:
// each call appends kernels that work on the step's activations, named here as the code and papers
// name them:
//
//   h  [rows, width]              the hidden state, which runs through all layers
//   x  [rows, width]              h after a norm
//   a  [rows, heads, head_size]   what attention found
//   m  [rows, mlp_width]          inside the MLP
//   t  [rows, width]              a projection that is normed once more before it is added to h
//
// In the last layer nobody needs more of what attention found than the rows whose logits are
// wanted: from there on they are all the rows there are.
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
#include "engine/ops/matmul.h"
#include "engine/ops/rope.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// The parts of a step, as times of its commands are labelled.
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
inline constexpr std::string_view kLogits = "logits";
inline constexpr std::string_view kSampling = "sampling";
}  // namespace step_part

// What a step is recorded from; all of it outlives the recorded commands.
struct ForwardContext {
  const DeviceCaps& caps;
  PipelineStore& pipelines;
  const ModelConfig& config;
  const ModelWeights& weights;
  const Buffer& rope_table;
  const Buffer& window_rope_table;  // of windowed layers
  const Activations& activations;
  const KvCache& kv;
  const Buffer& inputs;       // a StepLayout
  const Buffer& sampled_ids;  // [slots] u32
  const std::vector<uint32_t>& windows;
  uint32_t context = 0;  // the longest a sequence gets
  bool deterministic = false;
};

class Forward {
 public:
  Forward(const ForwardContext& context, CommandRecorder& recorder, const StepBucket& bucket);

  const ModelConfig& config() const { return context_.config; }
  // Whether anything after attention is needed: not in the last layer where no logits are wanted.
  bool has_rows() const { return rows_ > 0; }

  // h = embedding[ids]
  Status embed();
  // x = norm(h), where what post_norm() left is added to h before.
  Status norm(WeightRole weight, uint32_t layer = 0);
  // a = attention(rope(q), rope(k), v) with q, k, v from x; keys and values go to the cache. In the
  // last layer h and a are then left with the rows that are wanted.
  Status attention(uint32_t layer);
  // h += weight * a
  Status add_attention_out(uint32_t layer);
  // m = activation(gate * x) . (up * x)
  Status mlp(uint32_t layer);
  // h += down * m
  Status add_mlp_out(uint32_t layer);
  // The same into t, for architectures that norm before they add: t = norm(t), added to h by the
  // next norm().
  Status attention_out(uint32_t layer);
  Status mlp_out(uint32_t layer);
  Status post_norm(WeightRole weight, uint32_t layer);
  // Logits of all rows there are by then, from x.
  Status logits();

 private:
  // Outputs of a weight with several segments lie one after the other, each [rows, outputs].
  struct Columns {
    BufferSlice slice;    // from row 0 to the last
    uint32_t stride = 0;  // floats from row to row
    uint32_t first = 0;   // of the segment's
  };
  Columns columns(const Weight& weight, const Buffer& outputs, uint32_t first,
                  uint32_t count) const;
  // Rows that go into a product, in the form it wants where the kernel that makes them can write
  // it.
  struct Rows {
    BufferSlice slice;
    RowForm form = RowForm::kFloats;
    std::optional<BufferSlice> norm_weight = {};  // the product is to norm them,
    std::optional<NormBetween> begun = {};        // or to end the norm that another began
  };
  // The form in which all segments of a weight want rows, if a kernel before can write it.
  RowForm form_for(const Weight& weight) const;
  MatmulPlan plan_for(const Weight& weight, const WeightSegment& segment) const;
  // Whether there is a single row that all segments of a weight can norm.
  bool norms_row(const Weight& weight) const;
  // The norm between attention's output and the MLP, where both products take a part in it.
  std::optional<NormBetween> norm_between(uint32_t layer) const;
  Matmul product(const WeightSegment& segment, const Rows& x) const;
  // The products of all segments, where the sums are left in parts because whatever reads them adds
  // them up: null where they are not. Only weights without a bias.
  Result<std::optional<MatmulParts>> matmul_parts(std::string_view part, const Weight& weight,
                                                  const Weight& bias, const Rows& x);
  // h += weight * x, or left in parts to the norm that comes next.
  Status add_product(std::string_view part, const Weight& weight, const Weight& bias,
                     const Rows& x);
  Status matmul(std::string_view part, const Weight& weight, const Weight* bias, const Rows& x,
                const Buffer& y, bool add_to_y, float soft_cap = 0);
  // m by one kernel, where one can; false where none can.
  Result<bool> gated_mlp(const Weight& weight, RowForm form);
  // The weight that reads what a norm leaves.
  const Weight* reader_of(WeightRole norm, uint32_t layer) const;
  const Weight& output_weight() const;
  // In a decode step row i is the one that is wanted of sequence i; otherwise they are picked.
  bool picks_rows(uint32_t layer) const {
    return bucket_.sequence_rows > 1 && layer + 1 == config().layers;
  }
  // Leaves h and a with the rows that are wanted.
  Status pick_rows();
  RopeKv rope_kv(uint32_t layer, const std::optional<MatmulParts>& parts) const;
  // All rows in a buffer of activations, as `form` or as floats.
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
  uint32_t rows_;                            // that h has
  const Buffer* hidden_;                     // h
  bool addend_ = false;                      // t is to be added to h
  std::optional<MatmulParts> addend_parts_;  // are to be added to h
  std::optional<NormBetween> begun_;         // by the product that was added to h last
  Rows normed_, attended_, mlp_;             // x, a and m
};

}  // namespace hearth
