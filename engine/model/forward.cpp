#include "engine/model/forward.h"

#include <algorithm>
#include <cassert>

#include "engine/ops/embed.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/mlp.h"
#include "engine/ops/norm.h"
#include "engine/ops/rope.h"
#include "params/attention_work.h"

namespace hearth {

Forward::Forward(const ForwardContext& context, CommandRecorder& recorder, const StepBucket& bucket)
    : context_(context),
      recorder_(recorder),
      bucket_(bucket),
      attention_shape_(
          step_attention_shape(context.config, context.kv.format(), bucket, context.context)),
      attention_plan_(choose_attention(context.caps, attention_shape_, context.deterministic)),
      layout_(step_layout(bucket, attention_plan_.capacity, context.windows.size())) {}

BufferSlice Forward::sequences() const {
  return input(layout_.sequences, bucket_.sequences * sizeof(params::StepSequence));
}

BufferSlice Forward::block_tables() const {
  return input(layout_.block_tables, context_.inputs.bytes() - layout_.block_tables);
}

Status Forward::embed() {
  const WeightSegment& table = context_.weights.get(WeightRole::kEmbedding).front();
  const EmbedShape shape{
      .format = table.format, .rows = bucket_.rows, .width = table.cols, .vocabulary = table.rows};
  recorder_.set_part(step_part::kEmbed);
  return record_embed(recorder_, context_.pipelines, choose_embed(context_.caps, shape),
                      {.ids = input(layout_.ids, bucket_.rows * sizeof(uint32_t)),
                       .sampled = context_.sampled_ids.all(),
                       .weight = table.buffer.all(),
                       .y = rows_of(context_.activations.hidden, shape.width),
                       .shape = shape,
                       .scale = config().embed_scale});
}

Status Forward::norm(WeightRole weight, uint32_t layer) {
  RmsNormShape shape{.rows = bucket_.rows, .width = config().width, .add_residual = addend_};
  const Weight* reader = reader_of(weight, layer);
  normed_form_ = reader == nullptr ? RowForm::kFloats : form_for(*reader);
  shape.form = normed_form_;
  const Activations& buffers = context_.activations;
  RmsNorm op{.x = rows_of(buffers.hidden, shape.width),
             .weight = context_.weights.get(weight, layer).front().buffer.all(),
             .y = rows_of(buffers.normed, shape.width),
             .shape = shape,
             .epsilon = config().norm_epsilon};
  if (addend_) op.residual = rows_of(buffers.projected, shape.width);
  op.prepared = prepared(shape.form, shape.width);
  addend_ = false;
  recorder_.set_part(step_part::kNorm);
  return record_rms_norm(recorder_, context_.pipelines, choose_rms_norm(context_.caps, shape), op);
}

Status Forward::post_norm(WeightRole weight, uint32_t layer) {
  const RmsNormShape shape{.rows = bucket_.rows, .width = config().width};
  const BufferSlice t = rows_of(context_.activations.projected, shape.width);
  addend_ = true;
  recorder_.set_part(step_part::kNorm);
  return record_rms_norm(recorder_, context_.pipelines, choose_rms_norm(context_.caps, shape),
                         {.x = t,
                          .weight = context_.weights.get(weight, layer).front().buffer.all(),
                          .y = t,
                          .shape = shape,
                          .epsilon = config().norm_epsilon});
}

RowForm Forward::form_for(const Weight& weight) const {
  std::optional<RowForm> form;
  for (const WeightSegment& segment : weight) {
    const MatmulShape shape{.format = segment.format,
                            .rows = bucket_.rows,
                            .inputs = segment.cols,
                            .outputs = segment.rows};
    const RowForm wanted = choose_matmul(context_.caps, shape, context_.deterministic).form;
    if (form && *form != wanted) return RowForm::kFloats;
    form = wanted;
  }
  return form && can_write_form(context_.caps, *form, weight.front().cols) ? *form
                                                                           : RowForm::kFloats;
}

BufferSlice Forward::prepared(RowForm form, uint32_t width) const {
  if (form == RowForm::kFloats) return {};
  return context_.activations.prepared.slice(0, row_form_bytes(form, bucket_.rows, width));
}

Forward::Rows Forward::normed_rows() const {
  return {rows_of(context_.activations.normed, config().width), normed_form_};
}

Forward::Rows Forward::mlp_rows() const {
  return {rows_of(context_.activations.mlp, config().mlp_width), mlp_form_};
}

const Weight& Forward::output_weight() const {
  const bool tied = !context_.weights.has(WeightRole::kOutput);
  return context_.weights.get(tied ? WeightRole::kEmbedding : WeightRole::kOutput);
}

const Weight* Forward::reader_of(WeightRole norm, uint32_t layer) const {
  switch (norm) {
    case WeightRole::kAttentionNorm:
      return &context_.weights.get(WeightRole::kQkv, layer);
    case WeightRole::kMlpNorm:
      return &context_.weights.get(WeightRole::kGateUp, layer);
    case WeightRole::kOutputNorm:
      return picks_rows() ? nullptr : &output_weight();
    default:
      return nullptr;
  }
}

Status Forward::matmul(std::string_view part, const Weight& weight, const Weight* bias,
                       const Rows& x, const Buffer& y, uint32_t rows, bool add_to_y,
                       float soft_cap) {
  recorder_.set_part(part);
  uint64_t first = 0;  // output of the segment
  for (const WeightSegment& segment : weight) {
    const MatmulShape shape{
        .format = segment.format, .rows = rows, .inputs = segment.cols, .outputs = segment.rows};
    const MatmulPlan plan = choose_matmul(context_.caps, shape, context_.deterministic);
    const BufferSlice to = y.slice(first * rows * 4, uint64_t{rows} * segment.rows * 4);
    Matmul op{.weight = segment.buffer.all(),
              .x = x.floats,
              .y = to,
              .soft_cap = soft_cap,
              .scratch = context_.activations.matmul_scratch.all(),
              .shape = shape};
    if (bias != nullptr && !bias->empty())
      op.bias = bias->front().buffer.slice(first * 4, uint64_t{segment.rows} * 4);
    if (add_to_y) op.residual = to;
    if (x.form != RowForm::kFloats && x.form == plan.form)
      op.prepared = prepared(x.form, segment.cols);
    HEARTH_TRY(record_matmul(recorder_, context_.pipelines, plan, op));
    first += segment.rows;
  }
  return {};
}

Forward::Columns Forward::columns(const Weight& weight, const Buffer& outputs, uint32_t first,
                                  uint32_t count) const {
  uint32_t begin = 0;
  for (const WeightSegment& segment : weight) {
    if (first < begin + segment.rows) {
      const uint64_t offset = uint64_t{begin} * bucket_.rows + (first - begin);
      const uint64_t floats = uint64_t{segment.rows} * (bucket_.rows - 1) + count;
      return {outputs.slice(offset * 4, floats * 4), segment.rows};
    }
    begin += segment.rows;
  }
  assert(false && "columns beyond the weight");
  return {};
}

Status Forward::rope_kv(uint32_t layer) {
  const ModelConfig& model = config();
  const Weight& weight = context_.weights.get(WeightRole::kQkv, layer);
  const Buffer& qkv = context_.activations.qkv;
  const RopeKvShape shape{.rows = bucket_.rows,
                          .heads = model.heads,
                          .kv_heads = model.kv_heads,
                          .head_size = model.head_size,
                          .rope_dims = model.rope_dims,
                          .pairs = model.rope_pairs,
                          .head_norms = model.head_norms,
                          .kv = context_.kv.format()};
  const auto rows = [&](uint32_t first, uint32_t count) {
    const Columns place = columns(weight, qkv, first, count);
    return HeadRows{.slice = place.slice, .stride = place.stride};
  };
  const bool windowed = model.layer_is_windowed(layer);
  RopeKv op{.q = rows(0, model.q_width()),
            .k = rows(model.q_width(), model.kv_width()),
            .v = rows(model.q_width() + model.kv_width(), model.kv_width()),
            .table = (windowed ? context_.window_rope_table : context_.rope_table).all(),
            .cache = context_.kv.layer(layer),
            .sequences = sequences(),
            .row_sequences = input(layout_.row_sequences, bucket_.rows * sizeof(uint32_t)),
            .block_tables = block_tables(),
            .shape = shape,
            .epsilon = model.norm_epsilon};
  op.q_out = {.slice = rows_of(context_.activations.queries, model.q_width())};
  if (model.head_norms) {
    op.q_norm = context_.weights.get(WeightRole::kQNorm, layer).front().buffer.all();
    op.k_norm = context_.weights.get(WeightRole::kKNorm, layer).front().buffer.all();
  }
  recorder_.set_part(step_part::kRope);
  return record_rope_kv(recorder_, context_.pipelines, choose_rope_kv(context_.caps, shape), op);
}

Status Forward::attention(uint32_t layer) {
  const ModelConfig& model = config();
  const Activations& buffers = context_.activations;
  HEARTH_TRY(matmul(step_part::kQkv, context_.weights.get(WeightRole::kQkv, layer),
                    &context_.weights.get(WeightRole::kQkvBias, layer), normed_rows(), buffers.qkv,
                    bucket_.rows, false));
  HEARTH_TRY(rope_kv(layer));

  const uint32_t window = model.layer_window(layer);
  const auto which = std::ranges::find(context_.windows, window) - context_.windows.begin();
  const StepLayout::Lists& lists = layout_.attention[which];
  const AttentionCapacity& capacity = attention_plan_.capacity;
  recorder_.set_part(step_part::kAttention);
  return record_attention(
      recorder_, context_.pipelines, attention_plan_,
      {.q = rows_of(buffers.queries, model.q_width()),
       .result = rows_of(buffers.attended, model.q_width()),
       .cache = context_.kv.layer(layer),
       .sequences = sequences(),
       .block_tables = block_tables(),
       .work = {.few = input(lists.few, capacity.few * sizeof(params::AttentionItem)),
                .many = input(lists.many, capacity.many * sizeof(params::AttentionItem)),
                .merges = input(lists.merges, capacity.merges * sizeof(params::AttentionMerge))},
       .partials = buffers.attention_partials.all(),
       .shape = attention_shape_,
       .window = window,
       .scale = model.attention_scale,
       .soft_cap = model.attention_soft_cap});
}

Status Forward::add_attention_out(uint32_t layer) {
  return matmul(step_part::kAttentionOut, context_.weights.get(WeightRole::kAttentionOut, layer),
                &context_.weights.get(WeightRole::kAttentionOutBias, layer),
                {rows_of(context_.activations.attended, config().q_width())},
                context_.activations.hidden, bucket_.rows, true);
}

Status Forward::attention_out(uint32_t layer) {
  return matmul(step_part::kAttentionOut, context_.weights.get(WeightRole::kAttentionOut, layer),
                nullptr, {rows_of(context_.activations.attended, config().q_width())},
                context_.activations.projected, bucket_.rows, false);
}

Status Forward::mlp(uint32_t layer) {
  const Activations& buffers = context_.activations;
  const uint32_t width = config().mlp_width;
  const Weight& weight = context_.weights.get(WeightRole::kGateUp, layer);
  HEARTH_TRY(matmul(step_part::kGateUp, weight, nullptr, normed_rows(), buffers.gate_up,
                    bucket_.rows, false));
  mlp_form_ = form_for(context_.weights.get(WeightRole::kDown, layer));
  const MlpShape shape{
      .rows = bucket_.rows, .width = width, .activation = config().activation, .form = mlp_form_};
  const Columns gate = columns(weight, buffers.gate_up, 0, width);
  const Columns up = columns(weight, buffers.gate_up, width, width);
  recorder_.set_part(step_part::kActivation);
  return record_mlp(recorder_, context_.pipelines, choose_mlp(context_.caps, shape),
                    {.gate = gate.slice,
                     .up = up.slice,
                     .y = rows_of(buffers.mlp, width),
                     .shape = shape,
                     .stride = gate.stride,
                     .prepared = prepared(mlp_form_, width)});
}

Status Forward::add_mlp_out(uint32_t layer) {
  return matmul(step_part::kDown, context_.weights.get(WeightRole::kDown, layer), nullptr,
                mlp_rows(), context_.activations.hidden, bucket_.rows, true);
}

Status Forward::mlp_out(uint32_t layer) {
  return matmul(step_part::kDown, context_.weights.get(WeightRole::kDown, layer), nullptr,
                mlp_rows(), context_.activations.projected, bucket_.rows, false);
}

Status Forward::logits() {
  if (bucket_.logit_rows == 0) return {};
  const Activations& buffers = context_.activations;
  const uint32_t width = config().width;
  Rows x = normed_rows();
  if (picks_rows()) {
    const GatherRowsShape shape{
        .rows = bucket_.logit_rows, .width = width, .source_rows = bucket_.rows};
    const BufferSlice picked = buffers.projected.slice(0, uint64_t{shape.rows} * width * 4);
    recorder_.set_part(step_part::kLogits);
    HEARTH_TRY(record_gather_rows(
        recorder_, context_.pipelines, choose_gather_rows(context_.caps, shape),
        {.x = x.floats,
         .indices = input(layout_.logit_rows, bucket_.logit_rows * sizeof(uint32_t)),
         .y = picked,
         .shape = shape}));
    x = {picked};
  }
  return matmul(step_part::kLogits, output_weight(), nullptr, x, buffers.logits, bucket_.logit_rows,
                false, config().logit_soft_cap);
}

}  // namespace hearth
