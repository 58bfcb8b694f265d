// Rope, head norms and the write into the paged KV cache: everything between the qkv projection and
// attention, in one kernel. shaders/rope_kv.comp has the formulas.
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/paged_kv.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

enum class RopePairs : uint8_t { kAdjacent, kHalves };  // (2i, 2i + 1), (i, i + rope_dims / 2)

struct RopeKvShape {
  uint32_t rows = 0;
  uint32_t heads = 0, kv_heads = 0;
  uint32_t head_size = 0;  // a multiple of 16
  uint32_t rope_dims = 0;  // rotated elements, from the first on; a multiple of 8
  RopePairs pairs = RopePairs::kAdjacent;
  bool head_norms = false;  // RMS norms of q and k, before rope
  KvFormat kv = KvFormat::kF16;
  // With several `parts`, q, k and v are partial sums of a split product, partial_stride floats
  // apart, which are added up.
  uint32_t parts = 1, partial_stride = 0;
  bool trees = false;  // rows may be in trees
  bool dealt = false;  // ranks share the KV blocks; a row's block may be kElsewhere
};

KernelPlan choose_rope_kv(const DeviceCaps& caps, const RopeKvShape& shape);

// How many groups of four elements of a head a lane takes. In a Q8_0 cache 8 of them share a scale
// and must not be spread over more than a subgroup.
constexpr uint32_t rope_lane_quads(uint32_t subgroup_size) {
  return subgroup_size >= 8 ? 1 : 8 / subgroup_size;
}

// Of the heads, and of the keys and values that are written.
OpCost rope_kv_cost(const RopeKvShape& shape);

// Rows of heads, possibly inside the rows of a wider matrix.
struct HeadRows {
  BufferSlice slice;    // from the first element of row 0 to the last of the last row
  uint32_t stride = 0;  // floats from row to row; a multiple of 4; 0: rows follow each other
  uint32_t column = 0;  // column of the matrix where the heads begin
};

struct RopeKv {
  HeadRows q, k, v;            // [rows, heads, head_size], twice [rows, kv_heads, head_size] f32
  HeadRows q_out;              // [rows, heads, head_size] f32; may be q
  BufferSlice q_norm, k_norm;  // [head_size] f32; only with shape.head_norms
  BufferSlice table;           // rope_table_words() for rope_dims
  PagedKv cache;
  BufferSlice sequences;  // [sequences] params::StepSequence
  // [rows] u32; with shape.trees followed by the rows' ancestor masks, [rows] u32
  BufferSlice row_sequences;
  BufferSlice block_tables;  // u32
  RopeKvShape shape;
  float epsilon = 1e-6f;  // of the head norms
};

// Sets op.q, op.k and op.v to parts of one [rows, (heads + 2 kv_heads) * head_size] matrix, as a
// fused projection writes them, and q_out to q. REQUIRES: op.shape is set.
void use_fused_qkv(RopeKv& op, const BufferSlice& qkv);

// Floats from row to row.
struct RopeStrides {
  uint32_t q = 0, k = 0, v = 0, q_out = 0;
};
RopeStrides strides_of(const RopeKv& op);

// Whether the kernel, or another that does the same work, supports these shapes and strides.
Status check_rope_kv(const RopeKv& op);

// Records the kernel. Fails if the shape is not supported (see RopeKvShape), if a stride is too
// short or not aligned, or if the kernel cannot be compiled.
Status record_rope_kv(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                      const RopeKv& op);

}  // namespace hearth
