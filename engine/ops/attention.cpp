#include "engine/ops/attention.h"

#include <fmt/format.h>

#include "params/attention.h"
#include "params/attention_merge.h"

namespace hearth {
namespace {

Status check(const AttentionShape& shape) {
  if (shape.head_size == 0 || shape.head_size % kHeadSizeUnit != 0 ||
      shape.head_size > kMaxHeadSize)
    return Error{ErrorKind::kInvalid,
                 fmt::format("attention with heads of {} elements: multiples of {} up to {} are "
                             "possible",
                             shape.head_size, kHeadSizeUnit, kMaxHeadSize)};
  if (shape.kv_heads == 0 || shape.heads == 0 || shape.heads % shape.kv_heads != 0)
    return Error{ErrorKind::kInvalid,
                 fmt::format("attention with {} heads over {} KV heads: the first must be a "
                             "multiple of the second",
                             shape.heads, shape.kv_heads)};
  return {};
}

// Sums first, then the stats, two floats a slot and head.
uint64_t sum_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return uint64_t{capacity.slots} * shape.heads * shape.head_size * 4;
}
uint64_t stat_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return uint64_t{capacity.slots} * shape.heads * 8;
}

uint64_t address_or_zero(const BufferSlice& slice) {
  return slice.buffer != nullptr ? slice.address() : 0;
}

PipelineInfo in_form(PipelineInfo info, RowForm form) {
  info.constants.back() = static_cast<uint32_t>(form);
  return info;
}

// One of the two lists. Buffers an op does not use count as reads of another it does, because an
// access list has a fixed length.
Status record_list(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                   const Attention& op, const BufferSlice& items, const AttentionPlan& whole) {
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(in_form(plan.pipeline, op.form)));
  const bool quantized = op.shape.kv == KvFormat::kQ8_0;
  const bool splits = whole.capacity.slots > 0;
  const params::Attention params{
      .q = op.q.address(),
      .result = op.result.address(),
      .keys = op.cache.keys.address(),
      .values = op.cache.values.address(),
      .key_scales = address_or_zero(op.cache.key_scales),
      .value_scales = address_or_zero(op.cache.value_scales),
      .sequences = op.sequences.address(),
      .block_tables = op.block_tables.address(),
      .items = items.address(),
      .partial_sums = splits ? op.partials.address() : 0,
      .partial_stats = splits ? op.partials.address() + sum_bytes(whole.capacity, op.shape) : 0,
      .rows = op.shape.bucket.rows,
      .heads = op.shape.heads,
      .kv_heads = op.shape.kv_heads,
      .window = op.window,
      .scale = op.scale,
      .soft_cap = op.soft_cap};
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.q), reads(op.cache.keys), reads(op.cache.values),
                                  reads(quantized ? op.cache.key_scales : op.cache.keys),
                                  reads(quantized ? op.cache.value_scales : op.cache.values),
                                  reads(op.sequences), reads(op.block_tables), reads(items),
                                  writes(op.result), writes(splits ? op.partials : op.result)}});
  return {};
}

Status record_merge(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                    const Attention& op, const AttentionCapacity& capacity) {
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(in_form(plan.pipeline, op.form)));
  const params::MergeAttention params{
      .result = op.result.address(),
      .merges = op.work.merges.address(),
      .partial_sums = op.partials.address(),
      .partial_stats = op.partials.address() + sum_bytes(capacity, op.shape),
      .rows = op.shape.bucket.rows,
      .heads = op.shape.heads,
      .head_size = op.shape.head_size};
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.work.merges), reads(op.partials), writes(op.result)}});
  return {};
}

}  // namespace

uint64_t attention_partial_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return sum_bytes(capacity, shape) + stat_bytes(capacity, shape);
}

bool can_write(const AttentionPlan& plan, RowForm form) {
  return form == RowForm::kFloats || plan.writes_halves;
}

Status record_attention(CommandRecorder& recorder, PipelineStore& pipelines,
                        const AttentionPlan& plan, const Attention& op) {
  HEARTH_TRY(check(op.shape));
  if (op.shape.kv == KvFormat::kQ8_0 &&
      (op.cache.key_scales.buffer == nullptr || op.cache.value_scales.buffer == nullptr))
    return Error{ErrorKind::kInvalid, "attention over a Q8_0 cache without scales"};
  if (!can_write(plan, op.form) ||
      op.result.bytes <
          row_form_bytes(op.form, op.shape.bucket.rows, op.shape.heads * op.shape.head_size))
    return Error{ErrorKind::kInvalid, "attention cannot write its result in that form, or there"};
  const uint64_t partial_bytes = attention_partial_bytes(plan.capacity, op.shape);
  if (op.partials.bytes < partial_bytes)
    return Error{ErrorKind::kInvalid,
                 fmt::format("attention needs {} bytes of partial results and was given {}",
                             partial_bytes, op.partials.bytes)};
  HEARTH_TRY(record_list(recorder, pipelines, plan.few, op, op.work.few, plan));
  if (plan.many) HEARTH_TRY(record_list(recorder, pipelines, *plan.many, op, op.work.many, plan));
  if (plan.merge) HEARTH_TRY(record_merge(recorder, pipelines, *plan.merge, op, plan.capacity));
  return {};
}

}  // namespace hearth
