#include "engine/ops/rope.h"

#include <string>

#include <fmt/format.h>

#include "params/rope_kv.h"

namespace hearth {

KernelPlan choose_rope_kv(const DeviceCaps& caps, const RopeKvShape& shape) {
  const uint32_t lanes = group_size(caps, 128);
  const uint32_t subgroups = lanes / caps.subgroup_size;
  return {.pipeline = {.kernel = std::string("rope_kv") + (shape.trees ? "_tree" : "") +
                                 (shape.dealt ? "_dealt." : ".") +
                                 std::string(kv_format_name(shape.kv)),
                       .constants =
                           params::RopeKvConstants{
                               .kWorkgroupSize = lanes,
                               .kHeads = shape.heads,
                               .kKvHeads = shape.kv_heads,
                               .kHeadSize = shape.head_size,
                               .kRopeDims = shape.rope_dims,
                               .kAdjacent = shape.pairs == RopePairs::kAdjacent ? 1u : 0u,
                               .kHeadNorms = shape.head_norms ? 1u : 0u,
                               .kLaneQuads = rope_lane_quads(caps.subgroup_size),
                               .kPartials = shape.parts,
                               .kPartialQuads = shape.partial_stride / 4},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.heads + 2 * shape.kv_heads, subgroups), .y = shape.rows}};
}

OpCost rope_kv_cost(const RopeKvShape& shape) {
  const double q_width = 1.0 * shape.heads * shape.head_size;
  const double kv_width = 1.0 * shape.kv_heads * shape.head_size;
  constexpr double kOperations = 10;  // per rotated value
  return {.memory_bytes = shape.rows * kv_token_bytes(shape.kv, shape.kv_heads, shape.head_size),
          .activation_bytes = 4 * shape.rows * (shape.parts * (q_width + 2 * kv_width) + q_width),
          .operations = kOperations * shape.rows * (q_width + kv_width)};
}

namespace {

uint32_t stride_of(const HeadRows& rows, uint32_t width) {
  return rows.stride == 0 ? width : rows.stride;
}

}  // namespace

RopeStrides strides_of(const RopeKv& op) {
  const uint32_t q_width = op.shape.heads * op.shape.head_size;
  const uint32_t kv_width = op.shape.kv_heads * op.shape.head_size;
  return {.q = stride_of(op.q, q_width),
          .k = stride_of(op.k, kv_width),
          .v = stride_of(op.v, kv_width),
          .q_out = stride_of(op.q_out, q_width)};
}

Status check_rope_kv(const RopeKv& op) {
  const RopeKvShape& shape = op.shape;
  if (shape.rows == 0 || shape.heads == 0 || shape.kv_heads == 0 || shape.head_size == 0 ||
      shape.head_size % 16 != 0 || shape.rope_dims % 8 != 0 || shape.rope_dims > shape.head_size)
    return Error{
        ErrorKind::kInvalid,
        fmt::format("rope of {} rows, {} + {} heads of {}, {} of them rotated: head sizes "
                    "in multiples of 16 and rotated dimensions in multiples of 8 are "
                    "possible",
                    shape.rows, shape.heads, shape.kv_heads, shape.head_size, shape.rope_dims)};
  const uint32_t q_width = shape.heads * shape.head_size;
  const uint32_t kv_width = shape.kv_heads * shape.head_size;
  const RopeStrides strides = strides_of(op);
  const bool aligned =
      strides.q % 4 == 0 && strides.k % 4 == 0 && strides.v % 4 == 0 && strides.q_out % 4 == 0;
  if (!aligned || strides.q < q_width || strides.q_out < q_width || strides.k < kv_width ||
      strides.v < kv_width)
    return Error{ErrorKind::kInvalid,
                 fmt::format("rope with rows {}, {}, {}, {} floats apart (q, k, v, q out): "
                             "multiples of 4, no less than a row, are possible",
                             strides.q, strides.k, strides.v, strides.q_out)};
  return {};
}

void use_fused_qkv(RopeKv& op, const BufferSlice& qkv) {
  const uint64_t rows = op.shape.rows;
  const uint32_t q_width = op.shape.heads * op.shape.head_size;
  const uint32_t kv_width = op.shape.kv_heads * op.shape.head_size;
  const uint32_t stride = q_width + 2 * kv_width;
  // Up to the last element of the last row that belongs to the part.
  const auto part = [&](uint32_t first, uint32_t width) {
    return HeadRows{qkv.slice(uint64_t{first} * 4, ((rows - 1) * stride + width) * 4), stride,
                    first};
  };
  op.q = op.q_out = part(0, q_width);
  op.k = part(q_width, kv_width);
  op.v = part(q_width + kv_width, kv_width);
}

Status record_rope_kv(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                      const RopeKv& op) {
  HEARTH_TRY(check_rope_kv(op));
  const RopeKvShape& shape = op.shape;
  if (shape.trees && op.row_sequences.bytes < uint64_t{shape.rows} * 8)
    return Error{ErrorKind::kInvalid, "rope in trees needs the ancestors of every row"};
  const RopeStrides strides = strides_of(op);
  PipelineInfo info = plan.pipeline;
  info.constants.set("kQStride", strides.q);
  info.constants.set("kKStride", strides.k);
  info.constants.set("kVStride", strides.v);
  info.constants.set("kQOutStride", strides.q_out);
  info.constants.set("kEpsilon", op.epsilon);
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(info));
  // Buffers that the kernel does not use are replaced by ones that it does.
  const bool scales = shape.kv == KvFormat::kQ8_0;
  const BufferSlice key_scales = scales ? op.cache.key_scales : op.cache.keys;
  const BufferSlice value_scales = scales ? op.cache.value_scales : op.cache.values;
  const BufferSlice q_norm = shape.head_norms ? op.q_norm : op.table;
  const BufferSlice k_norm = shape.head_norms ? op.k_norm : op.table;
  const params::RopeKv params{.q = op.q.slice,
                              .k = op.k.slice,
                              .v = op.v.slice,
                              .q_out = op.q_out.slice,
                              .q_norm = q_norm,
                              .k_norm = k_norm,
                              .table = op.table,
                              .keys = op.cache.keys,
                              .values = op.cache.values,
                              .key_scales = key_scales,
                              .value_scales = value_scales,
                              .sequences = op.sequences,
                              .row_sequences = op.row_sequences,
                              .block_tables = op.block_tables};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
