#include "engine/ops/attention.h"

#include <bit>

#include <fmt/format.h>

#include "params/attention.h"

namespace hearth {
namespace {

static_assert(sizeof(params::Attention) <= kMaxPushBytes);

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

uint64_t address_or_zero(const BufferSlice& slice) {
  return slice.buffer != nullptr ? slice.address() : 0;
}

// Where k or v begins, in quads from where q does.
uint32_t quads_after(const BufferSlice& q, const BufferSlice& other) {
  return static_cast<uint32_t>((other.offset - q.offset) / 16);
}

Status check_rope(const AttentionPlan& plan, const Attention& op) {
  HEARTH_TRY(check_rope_kv(*op.rope));
  const RopeKvShape& shape = op.rope->shape;
  const BufferSlice& q = op.rope->q.slice;
  const auto lies_after = [&](const BufferSlice& other) {
    return other.buffer == q.buffer && other.offset >= q.offset &&
           (other.offset - q.offset) % 16 == 0 && other.offset - q.offset < uint64_t{1} << 32;
  };
  const bool same = shape.heads == op.shape.heads && shape.kv_heads == op.shape.kv_heads &&
                    shape.head_size == op.shape.head_size && shape.kv == op.shape.kv &&
                    shape.rows == op.shape.bucket.rows;
  if (!plan.ropes || !same || !lies_after(op.rope->k.slice) || !lies_after(op.rope->v.slice))
    return Error{ErrorKind::kInvalid, "attention cannot rope such rows on its own"};
  return {};
}

// What follows the constants that say how a kernel cuts up its work.
void add_constants(PipelineInfo& info, const Attention& op) {
  std::vector<uint32_t>& constants = info.constants;
  constants.insert(constants.end(),
                   {static_cast<uint32_t>(op.form), op.shape.heads, op.shape.kv_heads,
                    std::bit_cast<uint32_t>(op.scale)});
  if (op.rope == nullptr) return;
  const RopeKv& rope = *op.rope;
  const RopeStrides strides = strides_of(rope);
  constants.insert(
      constants.end(),
      {1, rope.shape.rope_dims, rope.shape.pairs == RopePairs::kAdjacent ? 1u : 0u,
       rope.shape.head_norms ? 1u : 0u, rope_lane_quads(info.subgroup_size), rope.shape.parts,
       rope.shape.part_stride / 4, strides.q, strides.k, strides.v,
       std::bit_cast<uint32_t>(rope.epsilon), quads_after(rope.q.slice, rope.k.slice),
       quads_after(rope.q.slice, rope.v.slice)});
}

// One of the two lists. Buffers an op does not use count as reads of another it does, because an
// access list has a fixed length.
Status record_list(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                   const Attention& op, const BufferSlice& items, bool splits) {
  PipelineInfo info = plan.pipeline;
  add_constants(info, op);
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(info));
  const bool quantized = op.shape.kv == KvFormat::kQ8_0;
  const RopeKv* const rope = op.rope;
  const bool norms = rope != nullptr && rope->shape.head_norms;
  const BufferSlice& q = rope != nullptr ? rope->q.slice : op.q;
  const BufferSlice& table = rope != nullptr ? rope->table : q;
  const BufferSlice& q_norm = norms ? rope->q_norm : table;
  const BufferSlice& k_norm = norms ? rope->k_norm : table;
  const params::Attention params{.q = q.address(),
                                 .result = op.result.address(),
                                 .keys = op.cache.keys.address(),
                                 .values = op.cache.values.address(),
                                 .key_scales = address_or_zero(op.cache.key_scales),
                                 .value_scales = address_or_zero(op.cache.value_scales),
                                 .block_tables = op.block_tables.address(),
                                 .items = items.address(),
                                 .partials = splits ? op.partials.address() : 0,
                                 .counts = splits ? op.counts.address() : 0,
                                 .table = table.address(),
                                 .q_norm = q_norm.address(),
                                 .k_norm = k_norm.address(),
                                 .window = op.window,
                                 .soft_cap = op.soft_cap};
  const auto cached = [&](const BufferSlice& slice) {
    return rope != nullptr ? reads_writes(slice) : reads(slice);
  };
  recorder.dispatch(
      {.pipeline = *pipeline,
       .push = params,
       .groups = plan.groups,
       .accesses = {reads(q), reads(rope != nullptr ? rope->k.slice : q),
                    reads(rope != nullptr ? rope->v.slice : q), cached(op.cache.keys),
                    cached(op.cache.values),
                    cached(quantized ? op.cache.key_scales : op.cache.keys),
                    cached(quantized ? op.cache.value_scales : op.cache.values),
                    reads(op.block_tables), reads(items), reads(table), reads(q_norm),
                    reads(k_norm), writes(op.result), writes(splits ? op.partials : op.result),
                    writes(splits ? op.counts : op.result)}});
  return {};
}

}  // namespace

uint64_t attention_partial_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return uint64_t{capacity.slots} * shape.heads * (shape.head_size + 4) * 4;
}

uint64_t attention_count_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return capacity.slots == 0 ? 0 : uint64_t{shape.bucket.rows} * shape.heads * 4;
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
  const uint64_t count_bytes = attention_count_bytes(plan.capacity, op.shape);
  if (op.partials.bytes < partial_bytes || op.counts.bytes < count_bytes)
    return Error{ErrorKind::kInvalid,
                 fmt::format("attention needs {} bytes of partial results and {} of counts, and "
                             "was given {} and {}",
                             partial_bytes, count_bytes, op.partials.bytes, op.counts.bytes)};
  if (op.rope != nullptr) HEARTH_TRY(check_rope(plan, op));
  const bool splits = plan.capacity.slots > 0;
  HEARTH_TRY(record_list(recorder, pipelines, plan.few, op, op.work.few, splits));
  if (plan.many) HEARTH_TRY(record_list(recorder, pipelines, *plan.many, op, op.work.many, splits));
  return {};
}

}  // namespace hearth
