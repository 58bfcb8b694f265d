#include "engine/model/forward.h"

#include <algorithm>
#include <cassert>

#include "engine/ops/embed.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/mlp.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool_rows.h"
#include "params/attention_work.h"
#include "params/hidden_rows.h"
#include "params/pool_rows.h"

namespace hearth {

Forward::Forward(const ForwardContext& context, CommandRecorder& recorder, const StepBucket& bucket)
    : context_(context),
      recorder_(recorder),
      bucket_(bucket),
      attention_shape_(
          step_attention_shape(context.config, context.kv.format(), bucket, context.context)),
      attention_plan_(choose_attention(context.caps, attention_shape_, context.deterministic)),
      layout_(step_layout(bucket, attention_plan_.capacity, context.windows.size())),
      rows_(bucket.rows),
      hidden_(&context.activations.hidden) {}

BufferSlice Forward::sequences() const {
  return input(layout_.sequences, bucket_.sequences * sizeof(params::StepSequence));
}

BufferSlice Forward::block_tables() const {
  return input(layout_.block_tables, context_.inputs.bytes() - layout_.block_tables);
}

Status Forward::embed() {
  const WeightSegment& table = context_.weights.get(WeightRole::kEmbedding).front();
  const EmbedShape shape{
      .format = table.format, .rows = rows_, .width = table.cols, .vocabulary = table.rows};
  recorder_.set_section(step_part::kEmbed);
  return record_embed(recorder_, context_.pipelines, choose_embed(context_.caps, shape),
                      {.ids = input(layout_.ids, rows_ * sizeof(uint32_t)),
                       .sampled = context_.sampled_ids.all(),
                       .weight = table.buffer.all(),
                       .y = rows_of(*hidden_, shape.width),
                       .shape = shape,
                       .scale = config().embed_scale});
}

Status Forward::norm(WeightRole weight, uint32_t layer) {
  const Activations& buffers = context_.activations;
  const BufferSlice hidden = rows_of(*hidden_, config().width);
  const BufferSlice norm_weight = context_.weights.get(weight, layer).front().buffer.all();
  const Weight* reader = reader_of(weight, layer);
  if (reader != nullptr && !addend_ && !addend_parts_ && norms_row(*reader)) {
    normed_ = {.slice = hidden, .norm_weight = norm_weight};
    return {};
  }
  if (started_norm_) {
    normed_ = {
        .slice = started_norm_->rows, .form = RowForm::kHalves, .shared_norm = started_norm_};
    started_norm_.reset();
    return {};
  }
  RmsNormShape shape{.rows = rows_, .width = config().width};
  if (reader != nullptr) shape.form = form_for(*reader);
  normed_ = {.slice = rows_in(shape.form, buffers.normed, shape.width), .form = shape.form};
  RmsNorm op{.x = hidden,
             .weight = norm_weight,
             .y = normed_.slice,
             .shape = shape,
             .epsilon = config().norm_epsilon};
  if (addend_) {
    op.shape.residuals = 1;
    op.residual = rows_of(buffers.projected, shape.width);
  } else if (addend_parts_) {
    op.shape.residuals = addend_parts_->splits;
    op.residual = addend_parts_->slice;
    op.residual_stride = addend_parts_->row_stride;
    op.partial_stride = addend_parts_->split_stride;
  }
  if (weight == WeightRole::kAttentionNorm && norm_between(layer))
    op.scales = buffers.norm_state.slice(0, uint64_t{rows_} * 4);
  addend_ = false;
  addend_parts_.reset();
  recorder_.set_section(step_part::kNorm);
  return record_rms_norm(recorder_, context_.pipelines,
                         choose_rms_norm(context_.caps, op.shape, context_.deterministic), op);
}

Status Forward::post_norm(WeightRole weight, uint32_t layer) {
  const RmsNormShape shape{.rows = rows_, .width = config().width};
  const BufferSlice t = rows_of(context_.activations.projected, shape.width);
  addend_ = true;
  recorder_.set_section(step_part::kNorm);
  return record_rms_norm(recorder_, context_.pipelines,
                         choose_rms_norm(context_.caps, shape, context_.deterministic),
                         {.x = t,
                          .weight = context_.weights.get(weight, layer).front().buffer.all(),
                          .y = t,
                          .shape = shape,
                          .epsilon = config().norm_epsilon});
}

MatmulPlan Forward::plan_for(const Weight& weight, const WeightSegment& segment) const {
  uint32_t outputs = 0;
  for (const WeightSegment& each : weight) outputs += each.rows;
  return choose_matmul(context_.caps,
                       {.format = segment.format,
                        .rows = rows_,
                        .inputs = segment.cols,
                        .outputs = segment.rows,
                        .sibling_outputs = outputs - segment.rows},
                       context_.deterministic);
}

RowForm Forward::form_for(const Weight& weight) const {
  std::optional<RowForm> form;
  for (const WeightSegment& segment : weight) {
    const RowForm wanted = plan_for(weight, segment).form;
    if (form && *form != wanted) return RowForm::kFloats;
    form = wanted;
  }
  return form && can_write_form(*form, weight.front().cols) ? *form : RowForm::kFloats;
}

bool Forward::norms_row(const Weight& weight) const {
  return rows_ == 1 && std::ranges::all_of(weight, [&](const WeightSegment& segment) {
           return plan_for(weight, segment).norm_constant.has_value();
         });
}

std::optional<NormBetween> Forward::norm_between(uint32_t layer) const {
  const Weight& first = context_.weights.get(WeightRole::kAttentionOut, layer);
  const Weight& second = context_.weights.get(WeightRole::kGateUp, layer);
  if (picks_rows(layer) || first.size() != 1 || second.size() != 1) return std::nullopt;
  const MatmulPlan plan = plan_for(first, first.front());
  if (!plan.norm_part_constant || !plan_for(second, second.front()).norm_part_constant)
    return std::nullopt;
  const Activations& buffers = context_.activations;
  const uint32_t groups = plan.multiply.groups.y;
  return NormBetween{
      .weight = context_.weights.get(WeightRole::kMlpNorm, layer).front().buffer.all(),
      .rows = rows_in(RowForm::kHalves, buffers.normed, config().width),
      .state = buffers.norm_state.slice(0, norm_state_bytes(groups)),
      .groups = groups,
      .epsilon = config().norm_epsilon};
}

BufferSlice Forward::rows_in(RowForm form, const Buffer& buffer, uint32_t width) const {
  if (form == RowForm::kFloats) return rows_of(buffer, width);
  return buffer.slice(0, row_form_bytes(form, rows_, width));
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
      return needs_all_rows() ? nullptr : &output_weight();  // what reads them first reads floats
    default:
      return nullptr;
  }
}

Matmul Forward::product(const WeightSegment& segment, const Rows& x) const {
  Matmul op{.weight = segment.buffer.all(),
            .x = x.slice,
            .scratch = context_.activations.matmul_scratch.all(),
            .counts = context_.activations.matmul_counts.all(),
            .norm_weight = x.norm_weight,
            .norm_epsilon = config().norm_epsilon,
            .norm_before = x.shared_norm,
            .shape = {.format = segment.format,
                      .rows = rows_,
                      .inputs = segment.cols,
                      .outputs = segment.rows}};
  if (x.form != RowForm::kFloats) op.prepared = x.slice;
  return op;
}

Status Forward::matmul(std::string_view part, const Weight& weight, const Weight* bias,
                       const Rows& x, const Buffer& y, bool add_to_y, float soft_cap) {
  std::vector<PlannedMatmul> products;
  uint64_t first = 0;  // output of the segment
  for (const WeightSegment& segment : weight) {
    const MatmulPlan plan = plan_for(weight, segment);
    Matmul op = product(segment, x);
    op.y = y.slice(first * rows_ * 4, uint64_t{rows_} * segment.rows * 4);
    op.soft_cap = soft_cap;
    if (bias != nullptr && !bias->empty())
      op.bias = bias->front().buffer.slice(first * 4, uint64_t{segment.rows} * 4);
    if (add_to_y) {
      op.residual = op.y;
      op.norm_after = started_norm_;
    }
    products.push_back({plan, op});
    first += segment.rows;
  }
  recorder_.set_section(part);
  return record_matmuls(recorder_, context_.pipelines, products,
                        context_.activations.matmul_scratch.all());
}

Result<std::optional<MatmulParts>> Forward::matmul_parts(std::string_view part,
                                                         const Weight& weight, const Weight& bias,
                                                         const Rows& x) {
  if (!bias.empty()) return std::optional<MatmulParts>();
  std::vector<PlannedMatmul> products;
  for (const WeightSegment& segment : weight)
    products.push_back({plan_for(weight, segment), product(segment, x)});
  recorder_.set_section(part);
  return record_matmul_parts(recorder_, context_.pipelines, products,
                             context_.activations.matmul_scratch.all());
}

Status Forward::add_product(std::string_view part, const Weight& weight, const Weight& bias,
                            const Rows& x) {
  HEARTH_ASSIGN(addend_parts_, matmul_parts(part, weight, bias, x));
  if (addend_parts_) return {};
  return matmul(part, weight, &bias, x, *hidden_, true);
}

Forward::Columns Forward::columns(const Weight& weight, const Buffer& outputs, uint32_t first,
                                  uint32_t count) const {
  uint32_t begin = 0;
  for (const WeightSegment& segment : weight) {
    if (first < begin + segment.rows) {
      const uint64_t offset = uint64_t{begin} * rows_ + (first - begin);
      const uint64_t floats = uint64_t{segment.rows} * (rows_ - 1) + count;
      return {outputs.slice(offset * 4, floats * 4), segment.rows, first - begin};
    }
    begin += segment.rows;
  }
  assert(false && "columns beyond the weight");
  return {};
}

RopeKv Forward::rope_kv(uint32_t layer, const std::optional<MatmulParts>& parts) const {
  const ModelConfig& model = config();
  const Weight& weight = context_.weights.get(WeightRole::kQkv, layer);
  const Buffer& qkv = context_.activations.qkv;
  RopeKvShape shape{.rows = rows_,
                    .heads = model.heads,
                    .kv_heads = model.kv_heads,
                    .head_size = model.head_size,
                    .rope_dims = model.rope_dims,
                    .pairs = model.rope_pairs,
                    .head_norms = model.head_norms,
                    .kv = context_.kv.format(),
                    .trees = bucket_.trees};
  if (parts) {
    shape.parts = parts->splits;
    shape.partial_stride = parts->split_stride;
  }
  const auto rows = [&](uint32_t first, uint32_t count) {
    if (parts)
      return HeadRows{.slice = parts->slice.slice(uint64_t{first} * 4,
                                                  parts->slice.bytes - uint64_t{first} * 4),
                      .stride = parts->row_stride,
                      .column = first};
    const Columns place = columns(weight, qkv, first, count);
    return HeadRows{.slice = place.slice, .stride = place.stride, .column = place.first};
  };
  const bool windowed = model.layer_is_windowed(layer);
  RopeKv op{.q = rows(0, model.q_width()),
            .k = rows(model.q_width(), model.kv_width()),
            .v = rows(model.q_width() + model.kv_width(), model.kv_width()),
            .table = (windowed ? context_.window_rope_table : context_.rope_table).all(),
            .cache = context_.kv.layer(layer),
            .sequences = sequences(),
            .row_sequences = input(layout_.row_sequences,
                                   (bucket_.trees ? 2 : 1) * uint64_t{rows_} * sizeof(uint32_t)),
            .block_tables = block_tables(),
            .shape = shape,
            .epsilon = model.norm_epsilon};
  op.q_out = {.slice = rows_of(context_.activations.queries, model.q_width())};
  if (model.head_norms) {
    op.q_norm = context_.weights.get(WeightRole::kQNorm, layer).front().buffer.all();
    op.k_norm = context_.weights.get(WeightRole::kKNorm, layer).front().buffer.all();
  }
  return op;
}

Status Forward::attention(uint32_t layer) {
  const ModelConfig& model = config();
  const Activations& buffers = context_.activations;
  const Weight& qkv = context_.weights.get(WeightRole::kQkv, layer);
  const Weight& bias = context_.weights.get(WeightRole::kQkvBias, layer);
  HEARTH_ASSIGN(const auto parts, matmul_parts(step_part::kQkv, qkv, bias, normed_));
  if (!parts) HEARTH_TRY(matmul(step_part::kQkv, qkv, &bias, normed_, buffers.qkv, false));
  const RopeKv rope = rope_kv(layer, parts);
  if (!attention_plan_.ropes) {
    recorder_.set_section(step_part::kRope);
    HEARTH_TRY(record_rope_kv(recorder_, context_.pipelines,
                              choose_rope_kv(context_.caps, rope.shape), rope));
  }

  const bool picks = picks_rows(layer);
  if (picks && bucket_.logit_rows == 0) {
    rows_ = 0;
    return {};
  }
  const RowForm form =
      picks ? RowForm::kFloats : form_for(context_.weights.get(WeightRole::kAttentionOut, layer));
  attended_.form = can_write(attention_plan_, form) ? form : RowForm::kFloats;
  attended_.slice = rows_in(attended_.form, buffers.attended, model.q_width());

  const uint32_t window = model.layer_window(layer);
  const auto which = std::ranges::find(context_.windows, window) - context_.windows.begin();
  const StepLayout::Lists& lists = layout_.attention[which];
  const AttentionCapacity& capacity = attention_plan_.capacity;
  recorder_.set_section(step_part::kAttention);
  HEARTH_TRY(record_attention(
      recorder_, context_.pipelines, attention_plan_,
      {.q = rope.q_out.slice,
       .result = attended_.slice,
       .cache = context_.kv.layer(layer),
       .block_tables = block_tables(),
       .ancestors = bucket_.trees ? input(layout_.ancestors, bucket_.rows * sizeof(uint32_t))
                                  : BufferSlice(),
       .work = {.few = input(lists.few, capacity.few * sizeof(params::AttentionItem)),
                .many = input(lists.many, capacity.many * sizeof(params::AttentionItem))},
       .counts = buffers.attention_counts(),
       .partials = buffers.attention_partials(),
       .shape = attention_shape_,
       .window = window,
       .form = attended_.form,
       .scale = model.attention_scale,
       .soft_cap = model.attention_soft_cap,
       .rope = attention_plan_.ropes ? &rope : nullptr}));
  return picks ? pick_rows() : Status();
}

Status Forward::pick(const BufferSlice& from, const Buffer& to, uint32_t width) {
  const GatherRowsShape shape{
      .rows = bucket_.logit_rows, .width = width, .source_rows = bucket_.rows};
  return record_gather_rows(
      recorder_, context_.pipelines, choose_gather_rows(context_.caps, shape),
      {.x = from,
       .indices = input(layout_.logit_rows, bucket_.logit_rows * sizeof(uint32_t)),
       .y = to.slice(0, uint64_t{shape.rows} * width * 4),
       .shape = shape});
}

Status Forward::pick_rows() {
  const Activations& buffers = context_.activations;
  recorder_.set_section(step_part::kAttentionOut);
  HEARTH_TRY(pick(rows_of(*hidden_, config().width), buffers.picked, config().width));
  HEARTH_TRY(pick(attended_.slice, buffers.queries, config().q_width()));
  rows_ = bucket_.logit_rows;
  hidden_ = &buffers.picked;
  attended_ = {.slice = rows_of(buffers.queries, config().q_width())};
  return {};
}

Status Forward::add_attention_out(uint32_t layer) {
  started_norm_ = norm_between(layer);
  return add_product(step_part::kAttentionOut,
                     context_.weights.get(WeightRole::kAttentionOut, layer),
                     context_.weights.get(WeightRole::kAttentionOutBias, layer), attended_);
}

Status Forward::attention_out(uint32_t layer) {
  return matmul(step_part::kAttentionOut, context_.weights.get(WeightRole::kAttentionOut, layer),
                nullptr, attended_, context_.activations.projected, false);
}

Result<bool> Forward::gated_mlp(const Weight& weight, RowForm form) {
  const Activations& buffers = context_.activations;
  if (weight.size() != 1 || config().mlp_width % 4 != 0) return false;
  const MatmulPlan plan = plan_for(weight, weight.front());
  const bool halves = form == RowForm::kHalves;
  if (!plan.gate_constant || (halves && plan.form != RowForm::kHalves)) return false;
  Matmul op = product(weight.front(), normed_);
  op.gate = config().activation;
  op.half_results = halves;
  mlp_ = {.slice = rows_in(form, buffers.mlp, config().mlp_width), .form = form};
  op.y = mlp_.slice;
  recorder_.set_section(step_part::kGateUp);
  HEARTH_TRY(record_matmul(recorder_, context_.pipelines, plan, op));
  return true;
}

Status Forward::mlp(uint32_t layer) {
  const Activations& buffers = context_.activations;
  const uint32_t width = config().mlp_width;
  const Weight& weight = context_.weights.get(WeightRole::kGateUp, layer);
  const RowForm form = form_for(context_.weights.get(WeightRole::kDown, layer));
  HEARTH_ASSIGN(const bool done, gated_mlp(weight, form));
  if (done) return {};
  HEARTH_TRY(matmul(step_part::kGateUp, weight, nullptr, normed_, buffers.gate_up, false));
  mlp_ = {.slice = rows_in(form, buffers.mlp, width), .form = form};
  const MlpShape shape{
      .rows = rows_, .width = width, .activation = config().activation, .form = form};
  const Columns gate = columns(weight, buffers.gate_up, 0, width);
  const Columns up = columns(weight, buffers.gate_up, width, width);
  recorder_.set_section(step_part::kActivation);
  return record_mlp(
      recorder_, context_.pipelines, choose_mlp(context_.caps, shape),
      {.gate = gate.slice, .up = up.slice, .y = mlp_.slice, .shape = shape, .stride = gate.stride});
}

Status Forward::add_mlp_out(uint32_t layer) {
  static const Weight kNoBias;
  return add_product(step_part::kDown, context_.weights.get(WeightRole::kDown, layer), kNoBias,
                     mlp_);
}

Status Forward::mlp_out(uint32_t layer) {
  return matmul(step_part::kDown, context_.weights.get(WeightRole::kDown, layer), nullptr, mlp_,
                context_.activations.projected, false);
}

Status Forward::pool(const Buffer& sums) {
  const PoolRowsShape shape{.ranges = step_pools(bucket_), .width = config().width, .rows = rows_};
  recorder_.set_section(step_part::kPooling);
  return record_pool_rows(
      recorder_, context_.pipelines, choose_pool_rows(context_.caps, shape),
      {.x = normed_.slice,
       .ranges = input(layout_.pools, shape.ranges * sizeof(params::PoolRange)),
       .y = sums.slice(0, uint64_t{shape.ranges} * shape.width * 4),
       .shape = shape});
}

Status Forward::keep_and_compare(const HiddenPages& pages, const Buffer& similarity) {
  recorder_.set_section(step_part::kHiddenStates);
  const HiddenRowsShape kept{.rows = rows_, .width = config().width};
  HEARTH_TRY(record_keep_hidden(
      recorder_, context_.pipelines, choose_keep_hidden(context_.caps, kept),
      {.x = normed_.slice,
       .places = input(layout_.kept, uint64_t{rows_} * sizeof(params::HiddenPlace)),
       .pages = pages,
       .shape = kept}));
  if (bucket_.logit_rows == 0) return {};
  const HiddenRowsShape compared{.rows = bucket_.logit_rows, .width = config().width};
  return record_compare_hidden(
      recorder_, context_.pipelines, choose_compare_hidden(context_.caps, compared),
      {.x = normed_.slice,
       .comparisons =
           input(layout_.compared, uint64_t{compared.rows} * sizeof(params::HiddenComparison)),
       .pages = pages,
       .similarity = similarity.slice(
           0, uint64_t{compared.rows} * params::kComparisonParts * sizeof(float)),
       .shape = compared});
}

Status Forward::pick_normed() {
  if (bucket_.sequence_rows <= 1 || bucket_.logit_rows == 0) return {};
  HEARTH_TRY(pick(normed_.slice, context_.activations.picked, config().width));
  rows_ = bucket_.logit_rows;
  normed_ = {.slice = rows_of(context_.activations.picked, config().width)};
  return {};
}

Status Forward::logits() {
  return matmul(step_part::kLogits, output_weight(), nullptr, normed_, context_.activations.logits,
                false, config().logit_soft_cap);
}

}  // namespace hearth
