#include "engine/program/record.h"

#include <fmt/format.h>

#include "engine/ops/attention.h"
#include "engine/ops/embed.h"
#include "engine/ops/experts.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/matmul.h"
#include "engine/ops/mlp.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool_rows.h"
#include "engine/ops/rope.h"
#include "params/attention_work.h"
#include "params/hidden_rows.h"
#include "params/pool_rows.h"
#include "params/step.h"

namespace hearth {
namespace {

class PlanRecorder {
 public:
  PlanRecorder(CommandRecorder& recorder, PipelineStore& pipelines, const StepPlan& plan,
               const StepBuffers& buffers)
      : recorder_(recorder), pipelines_(pipelines), plan_(plan), buffers_(buffers) {}

  Status record(const PlannedOp& op) {
    recorder_.set_section(op.part);
    layer_ = op.layer;
    rows_ = op.rows;
    return std::visit([&](const auto& what) { return record(what); }, op.what);
  }

 private:
  Status record(const PlannedEmbed& embed) {
    return record_embed(recorder_, pipelines_, embed.kernel,
                        {.ids = input(plan_.layout.ids, rows_ * sizeof(uint32_t)),
                         .sampled = buffers_.sampled_ids,
                         .weight = weight(embed.op.weight),
                         .y = rows_of(embed.op.y, embed.shape.width),
                         .shape = embed.shape,
                         .scale = embed.op.scale,
                         .first = embed.op.first});
  }

  Status record(const PlannedNorm& norm) {
    const uint32_t width = norm.shape.width;
    RmsNorm op{.x = rows_of(norm.op.x, width),
               .weight = weight(norm.op.weight),
               .y = rows_of(norm.op.y, width, norm.shape.form),
               .shape = norm.shape,
               .epsilon = norm.op.epsilon};
    if (norm.addend && norm.addend->value) op.residual = rows_of(*norm.addend->value, width);
    if (norm.addend && norm.addend->parts) {
      op.residual = parts(*norm.addend->parts);
      op.residual_stride = norm.addend->parts->row_stride;
      op.partial_stride = norm.addend->parts->split_stride;
    }
    if (norm.keeps_scales)
      op.scales = buffers_.norm_state.slice(0, uint64_t{rows_} * sizeof(float));
    return record_rms_norm(recorder_, pipelines_, norm.kernel, op);
  }

  Status record(const PlannedAdd& add) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("nothing adds {} to {}: the next op must be a norm of the sum",
                             value_name(add.op.x), value_name(add.op.y))};
  }

  Status record(const PlannedProduct& product) {
    std::vector<PlannedMatmul> matmuls;
    uint64_t first = 0;  // output of the segment
    for (size_t i = 0; i < product.segments.size(); ++i) {
      const auto& [plan, shape] = product.segments[i];
      matmuls.push_back({plan, segment_op(product, i, first)});
      first += shape.outputs;
    }
    const BufferSlice& scratch = buffers_.matmul_scratch;
    return product.parts
               ? record_matmul_parts(recorder_, pipelines_, matmuls, *product.parts, scratch)
               : record_matmuls(recorder_, pipelines_, matmuls, product.turns, scratch);
  }

  // The product with one segment of the weight, whose outputs begin at `first`.
  Matmul segment_op(const PlannedProduct& product, size_t segment, uint64_t first) const {
    const MatmulShape& shape = product.segments[segment].shape;
    Matmul op{.weight = weight(product.op.weight, segment),
              .x = rows_of(product.op.x, shape.inputs, product.form),
              .scratch = buffers_.matmul_scratch,
              .counts = buffers_.matmul_counts,
              .shape = shape};
    if (product.form != RowForm::kFloats) op.prepared = op.x;
    if (product.norm) {
      op.norm_weight = weight(product.norm->weight);
      op.norm_epsilon = product.norm->epsilon;
    }
    if (product.finishes) op.norm_before = shared_norm(*product.finishes, shape.inputs);
    if (product.gate) {
      op.gate = product.gate;
      op.half_results = product.y_form == RowForm::kHalves;
      op.y = rows_of(product.op.y, shape.outputs / 2, product.y_form);
      return op;
    }
    if (product.parts) return op;
    op.y =
        value(product.op.y)
            .slice(first * rows_ * sizeof(float), uint64_t{rows_} * shape.outputs * sizeof(float));
    op.soft_cap = product.op.soft_cap;
    if (product.has_bias)
      op.bias = weight(*product.op.bias)
                    .slice(first * sizeof(float), uint64_t{shape.outputs} * sizeof(float));
    if (product.op.adds) op.residual = op.y;
    if (product.begins) op.norm_after = shared_norm(*product.begins, shape.outputs);
    return op;
  }

  NormBetween shared_norm(const SharedNorm& norm, uint32_t width) const {
    return {.weight = weight(norm.weight),
            .rows = rows_of(norm.rows, width, RowForm::kHalves),
            .state = buffers_.norm_state.slice(0, norm_state_bytes(norm.groups)),
            .groups = norm.groups,
            .epsilon = norm.epsilon};
  }

  Status record(const PlannedRopeKv& rope) {
    return record_rope_kv(recorder_, pipelines_, rope.kernel, rope_op(rope));
  }

  RopeKv rope_op(const PlannedRopeKv& rope) const {
    const RopeKvShape& shape = rope.op.shape;
    const BufferSlice outputs = rope.parts ? parts(*rope.parts) : value(rope.op.qkv);
    const auto heads = [&](const OutputPlace& place) {
      return HeadRows{.slice = outputs.slice(place.offset, place.bytes),
                      .stride = place.stride,
                      .column = place.column};
    };
    RopeKv op{.q = heads(rope.q),
              .k = heads(rope.k),
              .v = heads(rope.v),
              .table = rope.op.window_table ? buffers_.window_rope_table : buffers_.rope_table,
              .cache = buffers_.cache(layer_),
              .sequences = input(plan_.layout.sequences,
                                 plan_.bucket.sequences * sizeof(params::StepSequence)),
              .row_sequences = input(plan_.layout.row_sequences,
                                     (shape.trees ? 2 : 1) * uint64_t{rows_} * sizeof(uint32_t)),
              .block_tables = block_tables(),
              .shape = shape,
              .epsilon = rope.op.epsilon};
    op.q_out = {.slice = rows_of(rope.op.q, shape.heads * shape.head_size)};
    if (rope.op.q_norm) op.q_norm = weight(*rope.op.q_norm);
    if (rope.op.k_norm) op.k_norm = weight(*rope.op.k_norm);
    return op;
  }

  Status record(const PlannedAttention& attention) {
    const StepLayout::Lists& lists = plan_.layout.attention[attention.list];
    const AttentionCapacity& capacity = plan_.attention.capacity;
    std::optional<RopeKv> rope;
    if (attention.rope) rope = rope_op(*attention.rope);
    const AttentionShape& shape = plan_.attention_shape;
    BufferSlice result = rows_of(attention.op.y, attention.op.width, attention.form);
    if (shape.dealt) {
      result = value(attention.op.y).slice(0, attention_result_bytes(shape, attention.form));
      recorder_.fill(result, 0);  // for rows without keys on this rank
    }
    const uint64_t ancestors = shape.dealt ? lists.ancestors : plan_.layout.ancestors;
    return record_attention(
        recorder_, pipelines_, plan_.attention,
        {.q = rows_of(attention.op.q, attention.op.width),
         .result = result,
         .cache = buffers_.cache(layer_),
         .block_tables = block_tables(),
         .ancestors =
             plan_.bucket.trees ? input(ancestors, rows_ * sizeof(uint32_t)) : BufferSlice(),
         .work = {.few = input(lists.few, capacity.few * sizeof(params::AttentionItem)),
                  .many = input(lists.many, capacity.many * sizeof(params::AttentionItem))},
         .counts = buffers_.attention_counts,
         .partials = buffers_.attention_partials,
         .shape = shape,
         .window = attention.op.window,
         .form = attention.form,
         .scale = attention.op.scale,
         .soft_cap = attention.op.soft_cap,
         .sinks = attention.op.sinks ? weight(*attention.op.sinks) : BufferSlice(),
         .rope = rope ? &*rope : nullptr});
  }

  Status record(const PlannedActivation& activation) {
    const BufferSlice outputs = value(activation.op.x);
    const OutputPlace &gate = activation.gate, &up = activation.up;
    return record_mlp(recorder_, pipelines_, activation.kernel,
                      {.gate = outputs.slice(gate.offset, gate.bytes),
                       .up = outputs.slice(up.offset, up.bytes),
                       .y = rows_of(activation.op.y, activation.op.width, activation.shape.form),
                       .shape = activation.shape,
                       .stride = gate.stride});
  }

  Status record(const PlannedExperts& experts) {
    const ExpertsShape& shape = experts.op.shape;
    std::optional<ExpertNorm> norm;
    if (experts.norm) norm = {weight(experts.norm->weight), experts.norm->epsilon};
    return record_experts(recorder_, pipelines_, experts.plan,
                          {.x = rows_of(experts.op.x, shape.width),
                           .logits = rows_of(experts.op.routed, shape.experts),
                           .y = rows_of(experts.op.y, shape.width),
                           .gate_up = buffers_.experts(experts.op.gate_up, experts.op.gate_up_bias),
                           .down = buffers_.experts(experts.op.down, experts.op.down_bias),
                           .scratch = buffers_.matmul_scratch,
                           .leaves_parts = experts.parts.has_value(),
                           .norm = norm,
                           .shape = shape});
  }

  Status record(const PlannedPick& pick) {
    return record_gather_rows(
        recorder_, pipelines_, pick.kernel,
        {.x = value(pick.op.x).slice(0, uint64_t{pick.op.source_rows} * pick.op.width * 4),
         .indices = input(plan_.layout.logit_rows, rows_ * sizeof(uint32_t)),
         .y = rows_of(pick.op.y, pick.op.width),
         .shape = pick.shape});
  }

  Status record(const PlannedPool& pool) {
    const PoolRowsShape& shape = pool.shape;
    return record_pool_rows(
        recorder_, pipelines_, pool.kernel,
        {.x = rows_of(pool.op.x, shape.width),
         .ranges = input(plan_.layout.pools, shape.ranges * sizeof(params::PoolRange)),
         .y = buffers_.pooled.slice(0, uint64_t{shape.ranges} * shape.width * sizeof(float)),
         .shape = shape});
  }

  Status record(const PlannedKeep& keep) {
    return record_keep_hidden(
        recorder_, pipelines_, keep.kernel,
        {.x = rows_of(keep.op.x, keep.op.width),
         .places = input(plan_.layout.kept, uint64_t{rows_} * sizeof(params::HiddenPlace)),
         .pages = buffers_.pages,
         .shape = keep.shape});
  }

  Status record(const PlannedCompare& compare) {
    const uint64_t rows = compare.shape.rows;
    return record_compare_hidden(
        recorder_, pipelines_, compare.kernel,
        {.x = rows_of(compare.op.x, compare.op.width),
         .comparisons = input(plan_.layout.compared, rows * sizeof(params::HiddenComparison)),
         .pages = buffers_.pages,
         .similarity =
             buffers_.similarity.slice(0, rows * params::kComparisonParts * sizeof(float)),
         .shape = compare.shape});
  }

  Status record(const PlannedClear& clear) {
    recorder_.fill(rows_of(clear.op.y, clear.op.width), 0);
    return {};
  }

  Status record(const PlannedSum& sum) { return only_ranks(sum.op.y); }
  Status record(const PlannedGather& gather) { return only_ranks(gather.op.y); }
  Status record(const PlannedJoin& join) { return only_ranks(join.op.y); }
  Status record(const PlannedMerge& merge) { return only_ranks(merge.op.y); }
  static Status only_ranks(Value y) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} of several ranks cannot be recorded", value_name(y))};
  }

  BufferSlice value(Value name) const { return buffers_.values[static_cast<size_t>(name)]->all(); }
  // The op's rows of a value.
  BufferSlice rows_of(Value name, uint32_t width, RowForm form = RowForm::kFloats) const {
    return value(name).slice(0, row_form_bytes(form, rows_, width));
  }
  BufferSlice weight(const WeightName& name, size_t segment = 0) const {
    return buffers_.weight(name, segment);
  }
  BufferSlice parts(const PartsPlan& parts) const {
    return buffers_.matmul_scratch.slice(parts.offset, parts.bytes);
  }
  BufferSlice input(uint64_t offset, uint64_t bytes) const {
    return buffers_.inputs.slice(offset, bytes);
  }
  BufferSlice block_tables() const {
    return input(plan_.layout.block_tables, buffers_.inputs.bytes - plan_.layout.block_tables);
  }

  CommandRecorder& recorder_;
  PipelineStore& pipelines_;
  const StepPlan& plan_;
  const StepBuffers& buffers_;
  uint32_t layer_ = 0, rows_ = 0;  // of the current op
};

}  // namespace

Status record_plan(CommandRecorder& recorder, PipelineStore& pipelines, const StepPlan& plan,
                   std::span<const PlannedOp> ops, const StepBuffers& buffers) {
  PlanRecorder walker(recorder, pipelines, plan, buffers);
  for (const PlannedOp& op : ops) HEARTH_TRY(walker.record(op));
  return recorder.status();
}

}  // namespace hearth
