#include "tests/portability/llama_pipelines.h"

#include <algorithm>
#include <optional>

#include "engine/ops/attention.h"
#include "engine/ops/embed.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/matmul.h"
#include "engine/ops/mlp.h"
#include "engine/ops/norm.h"
#include "engine/ops/rope.h"
#include "engine/sampling/sampler.h"
#include "runtime/pipeline_collector.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kWidth = 4096, kMlpWidth = 14336, kVocabulary = 128256;
constexpr uint32_t kHeads = 32, kKvHeads = 8, kHeadSize = 128;
constexpr uint32_t kContext = 8192;

// Products of more rows are limited by arithmetic.
constexpr uint32_t kMostMemoryBoundRows = 8;

class Survey {
 public:
  Survey(const DeviceCaps& caps, uint32_t sequences, uint32_t rows)
      : caps_(caps), sequences_(sequences), sequence_rows_(rows), rows_(sequences * rows) {}

  Status survey(const LlamaWeights& weights) {
    HEARTH_TRY(embed(weights.most));
    std::vector<MatmulShape> qkv = {
        shape(weights.most, kWidth, (kHeads + 2 * kKvHeads) * kHeadSize)};
    if (weights.rest != weights.most) {
      constexpr uint32_t kQk = (kHeads + kKvHeads) * kHeadSize, kV = kKvHeads * kHeadSize;
      qkv = {shape(weights.most, kWidth, kQk, kV), shape(weights.rest, kWidth, kV, kQk)};
    }
    for (const MatmulShape& product : qkv) HEARTH_TRY(matmul(product, Use::kNormed));
    HEARTH_TRY(norms(qkv.front()));
    HEARTH_TRY(attention(choose_matmul(caps_, qkv.front())));
    HEARTH_TRY(matmul(shape(weights.most, kHeads * kHeadSize, kWidth), Use::kAdded));
    const MatmulShape gate_up = shape(weights.most, kWidth, 2 * kMlpWidth);
    HEARTH_TRY(matmul(gate_up, Use::kGated));
    HEARTH_TRY(norms(gate_up));
    for (const WeightFormat format : {weights.most, weights.rest}) {
      const MatmulShape down = shape(format, kMlpWidth, kWidth);
      HEARTH_TRY(matmul(down, Use::kAdded));
      HEARTH_TRY(activation(down));
    }
    // Only the last token of a sequence has logits.
    const uint32_t all_rows = std::exchange(rows_, sequences_);
    HEARTH_TRY(gather(all_rows));
    const MatmulShape logits = shape(weights.output, kWidth, kVocabulary);
    HEARTH_TRY(matmul(logits, Use::kNormed));
    HEARTH_TRY(norms(logits));
    return sampling();
  }

  std::vector<NeededPipeline> needed() const {
    std::vector<NeededPipeline> all;
    for (const PipelineInfo& info : bound_.infos()) all.push_back({info, true});
    for (const PipelineInfo& info : other_.infos()) all.push_back({info, false});
    return all;
  }

 private:
  enum class Use {
    kNormed,
    kAdded,
    kGated
  };  // x is normed, y is added to h, halves of y are joined

  MatmulShape shape(WeightFormat format, uint32_t inputs, uint32_t outputs,
                    uint32_t siblings = 0) const {
    return {.format = format,
            .rows = rows_,
            .inputs = inputs,
            .outputs = outputs,
            .sibling_outputs = siblings};
  }
  PipelineStore& products() { return rows_ <= kMostMemoryBoundRows ? bound_ : other_; }
  BufferSlice any() const { return buffer_.all(); }

  Status embed(WeightFormat format) {
    const EmbedShape shape{
        .format = format, .rows = rows_, .width = kWidth, .vocabulary = kVocabulary};
    return record_embed(
        recorder_, bound_, choose_embed(caps_, shape),
        {.ids = any(), .sampled = any(), .weight = any(), .y = any(), .shape = shape});
  }

  Status matmul(const MatmulShape& shape, Use use) {
    const MatmulPlan plan = choose_matmul(caps_, shape);
    Matmul op{
        .weight = any(), .x = any(), .y = any(), .scratch = any(), .counts = any(), .shape = shape};
    if (use == Use::kAdded) op.residual = any();
    HEARTH_TRY(record_matmul(recorder_, products(), plan, op));
    if (use == Use::kNormed && plan.can_norm) {
      op.norm_weight = any();
      HEARTH_TRY(record_matmul(recorder_, products(), plan, op));
    }
    if (use == Use::kGated && plan.can_gate) {
      op.gate = MlpActivation::kSilu;
      op.half_results = plan.form == RowForm::kHalves;
      HEARTH_TRY(record_matmul(recorder_, products(), plan, op));
      if (plan.can_norm) {
        op.norm_weight = any();
        HEARTH_TRY(record_matmul(recorder_, products(), plan, op));
      }
    }
    return {};
  }

  // The norm before a product: alone, and after adding the result of a product to h.
  Status norms(const MatmulShape& product) {
    const RowForm form = choose_matmul(caps_, product).form;
    const uint32_t splits =
        choose_matmul(caps_, shape(product.format, kMlpWidth, kWidth)).parts.splits;
    for (const uint32_t residuals : {0u, 1u, splits}) {
      const RmsNormShape shape{
          .rows = rows_, .width = kWidth, .residuals = residuals, .form = form};
      HEARTH_TRY(record_rms_norm(recorder_, bound_, choose_rms_norm(caps_, shape),
                                 {.x = any(),
                                  .weight = any(),
                                  .y = other_buffer_.all(),
                                  .shape = shape,
                                  .residual = third_buffer_.all(),
                                  .partial_stride = rows_ * kWidth}));
    }
    return {};
  }

  RopeKv rope(uint32_t parts) const {
    RopeKv op{.table = any(),
              .cache = {any(), any(), any(), any()},
              .sequences = any(),
              .row_sequences = any(),
              .block_tables = any(),
              .shape = {.rows = rows_,
                        .heads = kHeads,
                        .kv_heads = kKvHeads,
                        .head_size = kHeadSize,
                        .rope_dims = kHeadSize,
                        .parts = std::max(1u, parts)}};
    if (parts > 1) op.shape.partial_stride = rows_ * (kHeads + 2 * kKvHeads) * kHeadSize;
    use_fused_qkv(op, any());
    return op;
  }

  Status attention(const MatmulPlan& qkv) {
    const AttentionShape shape{.heads = kHeads,
                               .kv_heads = kKvHeads,
                               .head_size = kHeadSize,
                               .bucket = {.rows = rows_,
                                          .sequences = sequences_,
                                          .sequence_rows = sequence_rows_,
                                          .sequence_tokens = kContext}};
    const AttentionPlan plan = choose_attention(caps_, shape);
    Attention op{.q = any(),
                 .result = any(),
                 .cache = {any(), any(), any(), any()},
                 .block_tables = any(),
                 .work = {any(), any()},
                 .counts = any(),
                 .partials = any(),
                 .shape = shape,
                 .scale = 0.09f};
    PipelineStore& store = sequence_rows_ == 1 ? static_cast<PipelineStore&>(bound_) : other_;
    const RopeKv own = rope(qkv.parts.splits);
    HEARTH_TRY(record_rope_kv(recorder_, bound_, choose_rope_kv(caps_, own.shape), own));
    for (const RowForm form : {RowForm::kFloats, RowForm::kHalves}) {
      if (!can_write(plan, form)) continue;
      op.form = form;
      op.rope = nullptr;
      HEARTH_TRY(record_attention(recorder_, store, plan, op));
      if (!plan.ropes) continue;
      op.rope = &own;
      HEARTH_TRY(record_attention(recorder_, store, plan, op));
    }
    return {};
  }

  Status activation(const MatmulShape& down) {
    Mlp op{.y = other_buffer_.all(),
           .shape = {.rows = rows_, .width = kMlpWidth, .form = choose_matmul(caps_, down).form}};
    use_fused_gate_up(op, any());
    return record_mlp(recorder_, bound_, choose_mlp(caps_, op.shape), op);
  }

  Status gather(uint32_t source_rows) {
    const GatherRowsShape shape{.rows = rows_, .width = kWidth, .source_rows = source_rows};
    return record_gather_rows(
        recorder_, bound_, choose_gather_rows(caps_, shape),
        {.x = any(), .indices = any(), .y = other_buffer_.all(), .shape = shape});
  }

  Status sampling() {
    for (const bool greedy : {false, true}) {
      const SamplingShape shape{.rows = rows_, .vocab = kVocabulary, .greedy = greedy};
      HEARTH_TRY(record_sampling(recorder_, other_, choose_sampling(caps_, shape),
                                 {.logits = any(),
                                  .rows = any(),
                                  .biases = any(),
                                  .history_lengths = any(),
                                  .history = any(),
                                  .scratch = any(),
                                  .counts = any(),
                                  .ids = any(),
                                  .results = any(),
                                  .top = any(),
                                  .step_ids = any(),
                                  .words = any(),
                                  .mirostat = any(),
                                  .mirostat_rows = any(),
                                  .shape = shape,
                                  .history_capacity = 4096}));
    }
    return {};
  }

  const DeviceCaps& caps_;
  const uint32_t sequences_, sequence_rows_;
  uint32_t rows_;
  CommandRecorder recorder_ = CommandRecorder::dry();
  PipelineCollector bound_, other_;
  // Larger than anything that is recorded.
  static constexpr uint64_t kBytes = 1ull << 40;
  const Buffer buffer_ = Buffer::stand_in(kBytes, kBytes);
  const Buffer other_buffer_ = Buffer::stand_in(2 * kBytes, kBytes);
  const Buffer third_buffer_ = Buffer::stand_in(3 * kBytes, kBytes);
};

}  // namespace

Result<std::vector<NeededPipeline>> llama_pipelines(const DeviceCaps& caps,
                                                    const LlamaWeights& weights, uint32_t sequences,
                                                    uint32_t rows) {
  Survey survey(caps, sequences, rows);
  HEARTH_TRY(survey.survey(weights));
  return survey.needed();
}

}  // namespace hearth::testing
