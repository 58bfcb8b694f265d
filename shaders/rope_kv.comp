// What lies between the qkv projection and attention, in one pass over q, k and v:
//
//   u = x * norm_weight / sqrt(mean of x^2 + epsilon)   for a head x of q or k, with kHeadNorms
//   r = u with its first kRopeDims elements rotated     by position * frequency, for q and k
//   q_out[row, head] = r;  keys[slot of the row, head] = r;  values[slot of the row, head] = v
//
// A rotation takes the pair (a, b) to scale * (a cos - b sin, b cos + a sin). Pair i is elements
// (2i, 2i + 1) with kAdjacent, otherwise (i, i + kRopeDims / 2).
// KV=q8_0: each run of 32 elements gets d = f16(max |x| / 127) and q = round(x / d).
// A row without a sequence is padding: nothing is written for it.
//
// A subgroup a head of a row, no barriers: its lanes walk along the head, four elements each.
//   groups = [ceil((heads + 2 kv_heads) / subgroups in a group), rows, 1]
// q_out may be q: whatever reads an element of q has written it only after.
// REQUIRES: full subgroups of the planned size; head_size a multiple of 16; kRopeDims at most that
// and a multiple of 8; strides multiples of 4; addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/halves.glsl"
#include "common/rope_angle.glsl"
#include "params/rope_kv.h"
#include "common/chain.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kHeads = 1;
layout(constant_id = 2) const uint kKvHeads = 1;
layout(constant_id = 3) const uint kHeadSize = 64;
layout(constant_id = 4) const uint kRopeDims = 64;
layout(constant_id = 5) const uint kAdjacent = 0;
layout(constant_id = 6) const uint kHeadNorms = 0;
layout(constant_id = 7) const uint kLaneQuads = 1;  // Q8_0: quads of a lane; 8 / subgroup at least
// q, k and v may be parts of a split matmul's sums, to be added up here: kParts of them, so many
// quads apart.
layout(constant_id = 8) const uint kParts = 1;
layout(constant_id = 9) const uint kPartQuads = 0;
layout(constant_id = 10) const uint kQStride = 0;  // floats from row to row
layout(constant_id = 11) const uint kKvStride = 0;
layout(constant_id = 12) const uint kQOutStride = 0;
layout(constant_id = 13) const float kEpsilon = 1e-6;  // of the head norms

// Everything below counts in quads, four elements of a head.
const uint kHeadQuads = kHeadSize / 4;
const uint kRopeQuads = kRopeDims / 4;
const uint kHalfQuads = kRopeDims / 8;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Sequences {
  StepSequence at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate writeonly buffer HalfQuads {
  uvec2 at[];
};
layout(buffer_reference, std430, buffer_reference_align = 2) nonprivate writeonly buffer Halves {
  uint16_t at[];
};

// The head this subgroup works on.
F32x4 head;
F32x4 norm_weight;
bool normed = false;
float norm_scale = 1.0;
bool roped = false;
uint position;

vec4 input_quad(uint quad) {
  vec4 parts[kParts];
  [[unroll]] for (uint s = 0; s < kParts; ++s) parts[s] = head.at[s * kPartQuads + quad];
  vec4 sum = parts[0];
  [[unroll]] for (uint s = 1; s < kParts; ++s) sum += parts[s];
  return sum;
}

vec4 load_quad(uint quad) {
  const vec4 x = input_quad(quad);
  return normed ? x * norm_scale * norm_weight.at[quad] : x;
}

// Scaled cosines and sines for the elements of a quad of the rotated part.
void quad_angles(uint quad, out vec4 cosine, out vec4 sine) {
  U32x4 turns = U32x4(params.table + 16);
  uvec4 turn;
  if (kAdjacent != 0) {
    const uvec4 t = turns.at[quad];
    turn.xy = uvec2(turn_at(position, t.x, t.y));
    turn.zw = uvec2(turn_at(position, t.z, t.w));
  } else {
    const uint pairs = (quad < kHalfQuads ? quad : quad - kHalfQuads) * 2;
    const uvec4 t = turns.at[pairs], u = turns.at[pairs + 1];
    turn = uvec4(turn_at(position, t.x, t.y), turn_at(position, t.z, t.w),
                 turn_at(position, u.x, u.y), turn_at(position, u.z, u.w));
  }
  cos_sin(turn, cosine, sine);
  const float scale = F32(params.table).at[0];
  cosine *= scale;
  sine *= scale;
}

// A quad of the result, on its own.
vec4 result_quad(uint quad) {
  const vec4 x = load_quad(quad);
  if (!roped || quad >= kRopeQuads) return x;
  vec4 cosine, sine;
  quad_angles(quad, cosine, sine);
  if (kAdjacent != 0) return x * cosine + vec4(-x.y, x.x, -x.w, x.z) * sine;
  if (quad < kHalfQuads) return x * cosine - load_quad(quad + kHalfQuads) * sine;
  return x * cosine + load_quad(quad - kHalfQuads) * sine;
}

// Both quads of a pair of them by the same lane, which is what lets q_out be q.
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

#ifdef KV_F16
void write_cache(uint64_t cache, uint64_t scales, uint kv_row) {
  HalfQuads to = HalfQuads(cache + uint64_t(kv_row) * (kHeadSize * 2));
  for (uint i = gl_SubgroupInvocationID; i < kHeadQuads; i += gl_SubgroupSize) {
    const vec4 x = nearest_half(result_quad(i));
    to.at[i] = uvec2(packHalf2x16(x.xy), packHalf2x16(x.zw));
  }
}
#endif

#ifdef KV_Q8_0
uint pack_quad(vec4 x, float inverse) {
  const ivec4 q = ivec4(clamp(round(x * inverse), -127.0, 127.0)) & 255;
  return uint(q.x | q.y << 8 | q.z << 16 | q.w << 24);
}

void write_cache(uint64_t cache, uint64_t scales, uint kv_row) {
  const uint run_lanes = kScaleWeights / 4 / kLaneQuads;
  const uint head_runs = (kHeadSize + kScaleWeights - 1) / kScaleWeights;
  const uint own_run = gl_SubgroupInvocationID / run_lanes;
  U32 to = U32(cache + uint64_t(kv_row) * kHeadSize);
  Halves scale_of = Halves(scales + uint64_t(kv_row) * (head_runs * 2));
  for (uint begin = 0; begin < kHeadQuads; begin += gl_SubgroupSize * kLaneQuads) {
    const uint first = begin + gl_SubgroupInvocationID * kLaneQuads;
    vec4 x[kLaneQuads];
    float most = 0.0;
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) {
      x[i] = first + i < kHeadQuads ? result_quad(first + i) : vec4(0.0);
      const vec4 magnitude = abs(x[i]);
      most = max(most, max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w)));
    }
    // Runs are shorter than a subgroup: the subgroup's maximum, once for each of its runs.
    float run_most = 0.0;
    for (uint run = 0; run < gl_SubgroupSize / run_lanes; ++run) {
      const float largest = subgroupMax(own_run == run ? most : 0.0);
      run_most = own_run == run ? largest : run_most;
    }
    // By the scale as it is stored: its rounding then costs no accuracy.
    const uint d_bits = packHalf2x16(vec2(run_most / 127.0, 0.0));
    const float d = unpackHalf2x16(d_bits).x;
    const float inverse = d > 0.0 ? 1.0 / d : 0.0;
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i)
      if (first + i < kHeadQuads) to.at[first + i] = pack_quad(x[i], inverse);
    if (first < kHeadQuads && gl_SubgroupInvocationID % run_lanes == 0)
      scale_of.at[first / (kScaleWeights / 4)] = uint16_t(d_bits);
  }
}
#endif

// One head of q, k or v, whose row is at `position` and whose KV goes to `block`.
void take_head(uint which, uint row, uint block) {
  const bool is_query = which < kHeads;
  const bool is_key = !is_query && which < kHeads + kKvHeads;
  which -= is_query ? 0 : is_key ? kHeads : kHeads + kKvHeads;
  const uint64_t base = is_query ? params.q : is_key ? params.k : params.v;
  const uint stride = is_query ? kQStride : kKvStride;
  head = F32x4(base + (uint64_t(row) * stride + which * kHeadSize) * 4);
  roped = is_query || is_key;

  if (kHeadNorms != 0 && roped) {
    float squares = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < kHeadQuads; i += gl_SubgroupSize) {
      const vec4 x = input_quad(i);
      squares += dot(x, x);
    }
    norm_scale = inversesqrt(subgroupAdd(squares) / float(kHeadSize) + kEpsilon);
    norm_weight = F32x4(is_query ? params.q_norm : params.k_norm);
    normed = true;
  }

  if (is_query) {
    write_query(F32x4(params.q_out + (uint64_t(row) * kQOutStride + which * kHeadSize) * 4));
  } else {
    const uint kv_row = (block * kKvHeads + which) * kBlockTokens + position % kBlockTokens;
    write_cache(is_key ? params.keys : params.values,
                is_key ? params.key_scales : params.value_scales, kv_row);
  }
}

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint which = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
  const uint owner = U32(params.row_sequences).at[row];
  const bool has_head = which < kHeads + 2 * kKvHeads && owner != kNoSequence;
  uint block = 0;
  if (has_head) {
    const StepSequence sequence = Sequences(params.sequences).at[owner];
    position = sequence.first_position + (row - sequence.first_row);
    block = U32(params.block_tables).at[sequence.block_table + position / kBlockTokens];
  }
  chain_wait();
  if (has_head) take_head(which, row, block);
  chain_done();
}
