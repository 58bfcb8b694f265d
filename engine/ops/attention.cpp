#include "engine/ops/attention.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "params/attention.h"

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

// Rows from one partial sum to the next, or from one segment to the next.
uint32_t part_rows(const RopeKv& rope) {
  return rope.shape.parts > 1 ? rope.shape.partial_stride / strides_of(rope).q : rope.shape.rows;
}

// Floats from the beginning of q's segment to that of `other`; empty if that comes earlier or is in
// another buffer.
std::optional<uint64_t> floats_behind(const HeadRows& q, const HeadRows& other) {
  const uint64_t begin = q.slice.offset - uint64_t{q.column} * 4;
  const uint64_t other_begin = other.slice.offset - uint64_t{other.column} * 4;
  if (other.slice.buffer != q.slice.buffer || other_begin < begin) return std::nullopt;
  return (other_begin - begin) / 4;
}

// Where the kernel finds its rows, in floats: from row to row, from the row's start to its heads,
// and, per row of the step, from q's segment to this one.
struct RowPlace {
  uint32_t stride, column, behind;
};

RowPlace place_of(const RopeKv& rope, const HeadRows& rows, uint32_t stride) {
  const auto behind =
      static_cast<uint32_t>(floats_behind(rope.q, rows).value_or(0) / part_rows(rope));
  // With a single row, an earlier segment is just an offset in columns. This lets layers with
  // different products share a pipeline, which matters because a step of one row waits for
  // instructions to be fetched.
  if (rope.shape.rows == 1 && rope.shape.parts == 1) return {.column = rows.column + behind};
  return {.stride = stride, .column = rows.column, .behind = behind};
}

Status check_rope(const AttentionPlan& plan, const Attention& op) {
  HEARTH_TRY(check_rope_kv(*op.rope));
  const RopeKv& rope = *op.rope;
  const RopeKvShape& shape = rope.shape;
  const bool same = shape.heads == op.shape.heads && shape.kv_heads == op.shape.kv_heads &&
                    shape.head_size == op.shape.head_size && shape.kv == op.shape.kv &&
                    shape.rows == op.shape.bucket.rows;
  const auto is_segment = [&](const HeadRows& rows) {
    const std::optional<uint64_t> behind = floats_behind(rope.q, rows);
    return behind && *behind % part_rows(rope) == 0 && rows.column % 4 == 0;
  };
  if (!plan.ropes || !same || rope.q.column != 0 || !is_segment(rope.k) || !is_segment(rope.v))
    return Error{ErrorKind::kInvalid, "attention cannot rope such rows on its own"};
  return {};
}

uint32_t partials_after(const Attention& op) {
  return static_cast<uint32_t>(op.partials.offset - op.counts.offset);
}

// One of the two lists. Keys and values of the step are read by their distance from queries, and
// partial results written by theirs from the counts.
Status record_list(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                   const Attention& op, const BufferSlice& items, bool splits) {
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(attention_pipeline(plan, op)));
  const RopeKv* const rope = op.rope;
  const bool norms = rope != nullptr && rope->shape.head_norms;
  const BufferSlice& q = rope != nullptr ? rope->q.slice : op.q;
  const BufferSlice& table = rope != nullptr         ? rope->table
                             : op.shape.bucket.trees ? op.ancestors
                                                     : q;
  const BufferSlice& q_norm = op.shape.sinks ? op.sinks : norms ? rope->q_norm : table;
  const BufferSlice& k_norm = norms ? rope->k_norm : table;
  const auto cached = [&](const BufferSlice& slice) {
    return rope != nullptr ? reads_writes(slice) : reads(slice);
  };
  const params::Attention arguments{.q = q,
                                    .result = op.result,
                                    .keys = cached(op.cache.keys),
                                    .values = cached(op.cache.values),
                                    .key_scales = cached(op.cache.key_scales),
                                    .value_scales = cached(op.cache.value_scales),
                                    .block_tables = op.block_tables,
                                    .items = items,
                                    .counts = splits ? op.counts : BufferSlice{},
                                    .table = table,
                                    .q_norm = q_norm,
                                    .k_norm = k_norm,
                                    .partials = splits ? partials_after(op) : 0,
                                    .part_rows = rope != nullptr ? part_rows(*rope) : 0,
                                    // With dealt blocks, the lists have windows applied to them.
                                    .window = op.shape.dealt ? 0 : op.window,
                                    .soft_cap = op.soft_cap,
                                    .k = rope != nullptr ? rope->k.slice : BufferSlice{},
                                    .v = rope != nullptr ? rope->v.slice : BufferSlice{},
                                    .partial_results = splits ? op.partials : BufferSlice{}};
  recorder.dispatch({.pipeline = *pipeline, .arguments = arguments, .groups = plan.groups});
  return {};
}

}  // namespace

OpCost attention_cost(const AttentionShape& shape, std::span<const params::StepSequence> sequences,
                      uint32_t window) {
  const double token_bytes = kv_token_bytes(shape.kv, shape.kv_heads, shape.head_size);
  const double width = 1.0 * shape.heads * shape.head_size;
  const auto seen = [&](uint32_t position) {
    return window == 0 ? position + 1 : std::min(position + 1, window);
  };
  OpCost cost;
  for (const params::StepSequence& sequence : sequences) {
    // Each row sees one token more than the one before, up to the window.
    const double first = seen(sequence.first_position);
    const double last = seen(sequence.first_position + sequence.rows - 1);
    const double pairs = (first + last) / 2 * sequence.rows;
    // A token that any of the rows sees is read once.
    const double tokens = first + sequence.rows - 1;
    cost += {.memory_bytes = tokens * token_bytes,
             .activation_bytes = 8 * sequence.rows * width,
             .operations = 4 * pairs * width};
  }
  return cost;
}

uint64_t attention_result_bytes(const AttentionShape& shape, RowForm form) {
  const uint32_t size = shape.head_size + (shape.dealt ? params::kAttentionStats : 0);
  return row_form_bytes(form, shape.bucket.rows, shape.heads * size);
}

uint64_t attention_partial_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return uint64_t{capacity.slots} * shape.heads * (shape.head_size + 4) * 4;
}

uint64_t attention_count_bytes(const AttentionCapacity& capacity, const AttentionShape& shape) {
  return capacity.slots == 0 ? 0 : uint64_t{shape.bucket.rows} * shape.heads * 4;
}

PipelineInfo attention_pipeline(const KernelPlan& list, const Attention& op) {
  PipelineInfo info = list.pipeline;
  KernelConstants& constants = info.constants;
  constants.set("kForm", static_cast<uint32_t>(op.form));
  constants.set("kHeads", op.shape.heads);
  constants.set("kKvHeads", op.shape.kv_heads);
  constants.set("kScale", op.scale);
  if (op.rope == nullptr) return info;
  const RopeKv& rope = *op.rope;
  const RopeStrides strides = strides_of(rope);
  const RowPlace q = place_of(rope, rope.q, strides.q), k = place_of(rope, rope.k, strides.k),
                 v = place_of(rope, rope.v, strides.v);
  constants.set("kFuseRope", 1u);
  constants.set("kRopeDims", rope.shape.rope_dims);
  constants.set("kAdjacent", rope.shape.pairs == RopePairs::kAdjacent ? 1u : 0u);
  constants.set("kHeadNorms", rope.shape.head_norms ? 1u : 0u);
  constants.set("kLaneQuads", rope_lane_quads(info.subgroup_size));
  constants.set("kPartials", rope.shape.parts);
  constants.set("kQStride", q.stride);
  constants.set("kKStride", k.stride);
  constants.set("kVStride", v.stride);
  constants.set("kEpsilon", rope.epsilon);
  constants.set("kKColumn", k.column);
  constants.set("kKFloatsBefore", k.behind);
  constants.set("kVColumn", v.column);
  constants.set("kVFloatsBefore", v.behind);
  return info;
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
  if (!can_write(plan, op.form) || op.result.bytes < attention_result_bytes(op.shape, op.form))
    return Error{ErrorKind::kInvalid, "attention cannot write its result in that form, or there"};
  const uint64_t partial_bytes = attention_partial_bytes(plan.capacity, op.shape);
  const uint64_t count_bytes = attention_count_bytes(plan.capacity, op.shape);
  if (op.partials.bytes < partial_bytes || op.counts.bytes < count_bytes)
    return Error{ErrorKind::kInvalid,
                 fmt::format("attention needs {} bytes of partial results and {} of counts, and "
                             "was given {} and {}",
                             partial_bytes, count_bytes, op.partials.bytes, op.counts.bytes)};
  if (partial_bytes > 0 &&
      (op.partials.buffer != op.counts.buffer || op.partials.offset < op.counts.offset))
    return Error{ErrorKind::kInvalid, "attention wants its partial results after its counts"};
  if (op.shape.sinks && (op.sinks.bytes < uint64_t{op.shape.heads} * 4 ||
                         (op.rope != nullptr && op.rope->shape.head_norms)))
    return Error{ErrorKind::kInvalid,
                 "attention with sinks needs one for each head, and no norms of its heads"};
  if (op.rope != nullptr) HEARTH_TRY(check_rope(plan, op));
  if (op.shape.bucket.trees && op.ancestors.bytes < uint64_t{op.shape.bucket.rows} * 4)
    return Error{ErrorKind::kInvalid, "attention to trees needs the ancestors of every row"};
  const bool splits = plan.capacity.slots > 0;
  if (plan.capacity.few > 0)
    HEARTH_TRY(record_list(recorder, pipelines, plan.few, op, op.work.few, splits));
  if (plan.many) HEARTH_TRY(record_list(recorder, pipelines, *plan.many, op, op.work.many, splits));
  return {};
}

}  // namespace hearth
