// Everything between the qkv projection and attention, in one pass over q, k and v:
//
//   u = x * norm_weight / sqrt(mean of x^2 + epsilon)   for each head x of q and k, if kHeadNorms
//   r = u with its first kRopeDims elements rotated     by position * frequency, for q and k
//   q_out[row, head] = r;  keys[slot of the row, head] = r;  values[slot of the row, head] = v
//
// A rotation maps the pair (a, b) to scale * (a cos - b sin, b cos + a sin). Pair i is elements
// (2i, 2i + 1) if kAdjacent, otherwise (i, i + kRopeDims / 2).
// KV=q8_0: each scale group of 32 elements gets d = f16(max |x| / 127) and q = round(x / d).
// A row without a sequence is padding: nothing is written for it.
// DEALT: ranks share the blocks. Of a row whose block is kElsewhere, only q_out is written.
// TREE_ROWS: a row of a tree is rotated by its position on its own path, and written to the slot of its
// position in the cache (common/tree_rows.glsl).
//
// attention_rows.comp does this itself (kFuseRope) if every sequence has exactly one row.
//
// One subgroup per head of a row, no barriers: the lanes go along the head, one quad each.
//   workgroups = [ceil((heads + 2 kv_heads) / subgroups per workgroup), rows, 1]
// q_out may be q: the lane that writes an element has read everything it needs before.
// REQUIRES: full subgroups of the planned size; head_size a multiple of 16; kRopeDims at most
// head_size and a multiple of 8; strides multiples of 4; addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/rope_kv.h"
#include "common/chain.glsl"

uint partial_quads() { return kPartialQuads; }
#include "common/rope_head.glsl"
#ifdef TREE_ROWS
#include "common/tree_rows.glsl"
uint cache_position;
#else
#define cache_position position
#endif

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Sequences {
  StepSequence at[];
};

// The same lane writes both quads of a pair of quads, which is why q_out may be q.
void write_query(F32x4 to) {
  const uint apart = kAdjacent != 0 ? 0 : kHalfQuads;
  for (uint i = gl_SubgroupInvocationID; i < kHeadQuads - apart; i += gl_SubgroupSize) {
    if (i >= apart) {
      to.at[i + apart] = result_quad(i + apart);
    } else {
      const vec4 a = load_quad(i), b = load_quad(i + apart);
      vec4 cosine, sine;
      quad_angles(i, cosine, sine);
      to.at[i] = a * cosine - b * sine;
      to.at[i + apart] = b * cosine + a * sine;
    }
  }
}

// Processes one head of q, k or v; the row is at `position`, and its k and v go to cache_position in
// `block`.
void process_head(uint which, uint row, uint block) {
  const bool is_query = which < kHeads;
  const bool is_key = !is_query && which < kHeads + kKvHeads;
  which -= is_query ? 0 : is_key ? kHeads : kHeads + kKvHeads;
  const uint64_t base = is_query ? params.q : is_key ? params.k : params.v;
  const uint stride = is_query ? kQStride : is_key ? kKStride : kVStride;
  open_head(base + (uint64_t(row) * stride + which * kHeadSize) * 4, is_query || is_key,
            is_query ? params.q_norm : params.k_norm);
  if (is_query) {
    write_query(F32x4(params.q_out + (uint64_t(row) * kQOutStride + which * kHeadSize) * 4));
#ifdef DEALT
  } else if (block == kElsewhere) {
    return;
#endif
  } else {
    const uint kv_row = (block * kKvHeads + which) * kTokensPerBlock + cache_position % kTokensPerBlock;
    for (uint begin = 0; begin < kHeadQuads; begin += gl_SubgroupSize * kLaneQuads) {
      const uint first = begin + gl_SubgroupInvocationID * kLaneQuads;
      vec4 quads[kLaneQuads];
      [[unroll]] for (uint i = 0; i < kLaneQuads; ++i)
        quads[i] = first + i < kHeadQuads ? result_quad(first + i) : vec4(0.0);
      write_cache(is_key ? params.keys : params.values,
                  is_key ? params.key_scales : params.value_scales, kv_row, first, quads);
    }
  }
}

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint which = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
  const uint owner = U32(params.row_sequences).at[row];
  const bool has_head = which < kHeads + 2 * kKvHeads && owner != kNoSequence && !chain_failed_before();
  uint block = 0;
  if (has_head) {
    const StepSequence sequence = Sequences(params.sequences).at[owner];
    cache_position = sequence.first_position + (row - sequence.first_row);
    block = U32(params.block_tables).at[sequence.block_table + cache_position / kTokensPerBlock];
#ifdef TREE_ROWS
    position = path_position(U32(params.row_sequences).at[gl_NumWorkGroups.y + row], cache_position);
#endif
  }
  chain_wait();
  if (has_head) process_head(which, row, block);
  chain_done();
}
