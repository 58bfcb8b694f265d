// Norm and rotation of one head of q or k, and the write of k and v to the cache, by a subgroup whose
// lanes go along the head; rope_kv.comp has the formulas.
//
// Include after params with a rope table; needs kHeadSize, kRopeDims, kAdjacent, kHeadNorms,
// kLaneQuads, kPartials and kEpsilon as in rope_kv.comp, and partial_quads(), the quads from one partial
// sum to the next.
#ifndef HEARTH_ROPE_HEAD_GLSL
#define HEARTH_ROPE_HEAD_GLSL
#include "common/halves.glsl"
#include "common/rope_angle.glsl"

// Everything below counts in quads of four elements.
const uint kHeadQuads = kHeadSize / 4;
const uint kRopeQuads = kRopeDims / 4;
const uint kHalfQuads = kRopeDims / 8;

layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate writeonly buffer HalfQuads {
  uvec2 at[];
};
layout(buffer_reference, std430, buffer_reference_align = 2) nonprivate writeonly buffer Halves {
  uint16_t at[];
};

// The head this subgroup works on, and its token's position in the sequence.
FreshF32x4 head;
F32x4 norm_weight;
bool normed = false;
float norm_scale = 1.0;
bool roped = false;
uint position;

vec4 input_quad(uint quad) {
  vec4 parts[kPartials];
  [[unroll]] for (uint s = 0; s < kPartials; ++s) parts[s] = head.at[s * partial_quads() + quad];
  vec4 sum = parts[0];
  [[unroll]] for (uint s = 1; s < kPartials; ++s) sum += parts[s];
  return sum;
}

vec4 load_quad(uint quad) {
  const vec4 x = input_quad(quad);
  return normed ? x * norm_scale * norm_weight.at[quad] : x;
}

// Scaled cosines and sines for the elements of a quad in the rotated part.
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

// The quad whose elements are paired with those of `quad` in the rotated part, if pairs are not
// adjacent.
uint other_quad(uint quad) { return quad < kHalfQuads ? quad + kHalfQuads : quad - kHalfQuads; }

vec4 rotate_quad(uint quad, vec4 x, vec4 other, vec4 cosine, vec4 sine) {
  if (kAdjacent != 0) return x * cosine + vec4(-x.y, x.x, -x.w, x.z) * sine;
  return quad < kHalfQuads ? x * cosine - other * sine : x * cosine + other * sine;
}

// Computes one quad of the result by itself.
vec4 result_quad(uint quad) {
  const vec4 x = load_quad(quad);
  if (!roped || quad >= kRopeQuads) return x;
  vec4 cosine, sine;
  quad_angles(quad, cosine, sine);
  return rotate_quad(quad, x, kAdjacent != 0 ? x : load_quad(other_quad(quad)), cosine, sine);
}

// Starts work on a head: one of q or k, which is normed with `weight` and rotated, or one of v.
void open_head(uint64_t at, bool is_roped, uint64_t weight) {
  head = FreshF32x4(at);
  roped = is_roped;
  normed = false;
  if (kHeadNorms == 0 || !is_roped) return;
  float squares = 0.0;
  for (uint i = gl_SubgroupInvocationID; i < kHeadQuads; i += gl_SubgroupSize) {
    const vec4 x = input_quad(i);
    squares += dot(x, x);
  }
  norm_scale = inversesqrt(subgroupAdd(squares) / float(kHeadSize) + kEpsilon);
  norm_weight = F32x4(weight);
  normed = true;
}

// Writes kLaneQuads quads per lane of a head of k or v. This lane has the quads from `first` on, and the
// next lane those that follow.
#ifdef KV_F16
void write_cache(uint64_t cache, uint64_t scales, uint kv_row, uint first, vec4 quads[kLaneQuads]) {
  HalfQuads to = HalfQuads(cache + uint64_t(kv_row) * (kHeadSize * 2));
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) {
    const vec4 x = nearest_half(quads[i]);
    if (first + i < kHeadQuads)
      to.at[first + i] = uvec2(packHalf2x16(x.xy), packHalf2x16(x.zw));
  }
}
#endif

#ifdef KV_Q8_0
uint pack_quad(vec4 x, float inverse) {
  const ivec4 q = ivec4(clamp(round(x * inverse), -127.0, 127.0)) & 255;
  return uint(q.x | q.y << 8 | q.z << 16 | q.w << 24);
}

void write_cache(uint64_t cache, uint64_t scales, uint kv_row, uint first, vec4 quads[kLaneQuads]) {
  const uint group_lanes = kScaleWeights / 4 / kLaneQuads;
  const uint head_groups = DIVIDE_UP(kHeadSize, kScaleWeights);
  const uint own_group = gl_SubgroupInvocationID / group_lanes;
  float lane_max = 0.0;
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) {
    const vec4 magnitude = first + i < kHeadQuads ? abs(quads[i]) : vec4(0.0);
    lane_max = max(lane_max, max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w)));
  }
  // A scale group has fewer lanes than the subgroup, so take the subgroup's maximum once per group.
  float group_max = 0.0;
  for (uint group = 0; group < gl_SubgroupSize / group_lanes; ++group) {
    const float largest = subgroupMax(own_group == group ? lane_max : 0.0);
    group_max = own_group == group ? largest : group_max;
  }
  // Quantizes with the scale as stored, so that its rounding costs no accuracy.
  const uint d_bits = packHalf2x16(vec2(group_max / 127.0, 0.0));
  const float d = unpackHalf2x16(d_bits).x;
  const float inverse = d > 0.0 ? 1.0 / d : 0.0;
  U32 to = U32(cache + uint64_t(kv_row) * kHeadSize);
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i)
    if (first + i < kHeadQuads) to.at[first + i] = pack_quad(quads[i], inverse);
  if (first < kHeadQuads && gl_SubgroupInvocationID % group_lanes == 0)
    Halves(scales + uint64_t(kv_row) * (head_groups * 2)).at[first / (kScaleWeights / 4)] =
        uint16_t(d_bits);
}
#endif

#endif
