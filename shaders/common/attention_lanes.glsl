// The body of attention_lanes.comp, which describes it, and of attention_lanes_emulated.comp.
#ifndef HEARTH_ATTENTION_LANES_GLSL
#define HEARTH_ATTENTION_LANES_GLSL
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention_lanes.h"
#include "common/chain.glsl"
#include "common/halves.glsl"
#include "common/fragment_lanes.glsl"

const uint kSubgroupSize = 32;
const uint kRows = kSubgroups * 16;

#include "common/attention_kv.glsl"
#include "common/attention_work.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge_splits.glsl"
#include "common/attention_fragments.glsl"

const uint kSlices = kHeadSize / 16;  // fragments along a head
const uint kColumns = kHeadSize / 8;  // and across it
const uint kKeyBlocks = kKeys / 16;
const uint kScores = kKeys / 8;  // fragments across a tile's keys
const uint kInvocations = kSubgroups * kSubgroupSize;

// Shared memory is counted in vecs of 16 bytes, a lane's four words of a fragment. Keys are [16 keys,
// slices, swizzled lanes], like the weights of matmul_wide: words of a key and of the one 8 further on.
// Values are [32 keys, columns, swizzled lanes]: a lane's words of the first sixteen keys and of the
// second sixteen, in the opposite order in every other eight columns.
const uint kKeyVecs = kKeyBlocks * kSlices * kSubgroupSize;
shared uvec4 tile[kKeyVecs + kKeyBlocks / 2 * kColumns * kSubgroupSize];

// Where the words are that lane 4 * key + lane reads; in every other pair of slices, xor kSwizzleFlip.
const uint kSwizzleFlip = 3;
uint swizzle(uint key, uint lane) {
  return key / 2 * 8 + (lane ^ (key / 2 % 2 * 2) ^ (key / 4)) * 2 + key % 2;
}

// An invocation loads chunks of keys in pairs, eight keys apart, and chunks of values in fours, because
// a lane of the product needs four values of every sixteen: those of keys 2 * lane, the next, and the
// two that are 8 further on.
const uint kKeyPairs = kKeys / 2 * kRowChunks, kValueFours = kKeys / 4 * kRowChunks;
const uint kKeyPairLoads = DIVIDE_UP(kKeyPairs, kInvocations);
const uint kValueFourLoads = DIVIDE_UP(kValueFours, kInvocations);
const uint kKeyLoads = 2 * kKeyPairLoads, kValueLoads = 4 * kValueFourLoads;

// x = the first key of the pair, y = chunk.
uvec2 key_pair_at(uint i) {
  const uint pair = gl_LocalInvocationIndex + i * kInvocations, row = pair / kRowChunks;
  return uvec2(row / 8 * 16 + row % 8, pair % kRowChunks);
}

// x = which sixteen keys, y = chunk, z = lane.
uvec3 value_four_at(uint i) {
  const uint four = gl_LocalInvocationIndex + i * kInvocations, rest = four / kRowChunks;
  return uvec3(rest % kKeyBlocks, four % kRowChunks, rest / kKeyBlocks);
}

// The first KV row of each cache block that this invocation's loads of a tile are in.
const uint kLoadBlocks = kKeyPairLoads + kValueFourLoads;
void find_blocks(out uint blocks[kLoadBlocks], Work work, uint first_key) {
  [[unroll]] for (uint i = 0; i < kKeyPairLoads; ++i)
    blocks[i] = block_rows(work, inside(work, first_key + key_pair_at(i).x));
  [[unroll]] for (uint i = 0; i < kValueFourLoads; ++i)
    blocks[kKeyPairLoads + i] = block_rows(work, inside(work, first_key + value_four_at(i).x * 16));
}

void load_tile(out KvChunk keys[kKeyLoads], out KvChunk values[kValueLoads],
               uint blocks[kLoadBlocks], Work work, uint first_key) {
  UNROLL for (uint i = 0; i < kKeyLoads; ++i) {
    const uvec2 at = key_pair_at(i / 2);
    const uint slot = inside(work, first_key + at.x + i % 2 * 8) % kTokensPerBlock;
    keys[i] = load_chunk(params.keys, params.key_scales, blocks[i / 2] + slot, at.y);
  }
  UNROLL for (uint i = 0; i < kValueLoads; ++i) {
    const uvec3 at = value_four_at(i / 4);
    const uint key = at.x * 16 + at.z * 2 + i % 2 + i % 4 / 2 * 8;
    const uint slot = inside(work, first_key + key) % kTokensPerBlock;
    values[i] =
        load_chunk(params.values, params.value_scales, blocks[kKeyPairLoads + i / 4] + slot, at.y);
  }
}

void store_keys(KvChunk keys[kKeyLoads]) {
  UNROLL for (uint i = 0; i < kKeyPairLoads; ++i) {
    const uvec2 at = key_pair_at(i);
    if (kKeyPairs % kInvocations != 0 && at.x >= kKeys) continue;
    UNROLL for (uint v = 0; v < kChunkVecs; ++v) {
      const uint vec = at.y * kChunkVecs + v;
      const uint place = (at.x / 16 * kSlices + vec / 4 * 2) * kSubgroupSize +
                         (swizzle(at.x % 8, vec % 4) ^ (vec / 4 % 2 * kSwizzleFlip));
      const uvec4 upper = chunk_halves(keys[2 * i], v), lower = chunk_halves(keys[2 * i + 1], v);
      tile[place] = uvec4(upper.xy, lower.xy);
      tile[place + kSubgroupSize] = uvec4(upper.zw, lower.zw);
    }
  }
}

void store_values(KvChunk values[kValueLoads]) {
  UNROLL for (uint i = 0; i < kValueFourLoads; ++i) {
    const uvec3 at = value_four_at(i);
    if (kValueFours % kInvocations != 0 && at.z >= 4) continue;
    UNROLL for (uint v = 0; v < kChunkVecs; ++v) {
      const uint column = at.y * kChunkVecs + v;
      const uint start = kKeyVecs + (at.x / 2 * kColumns + column) * kSubgroupSize;
      const bool first = at.x % 2 == column / 8 % 2;
      uvec4 vecs[4];
      UNROLL for (uint k = 0; k < 4; ++k) vecs[k] = chunk_halves(values[4 * i + k], v);
      UNROLL for (uint d = 0; d < 8; ++d) {
        const uvec2 words = uvec2(pair_word(vecs[0], vecs[1], d), pair_word(vecs[2], vecs[3], d));
        const uint place = start + ((d * 4 + at.z) ^ column % 8);
        if (first) tile[place].xy = words;
        else tile[place].zw = words;
      }
    }
  }
}

// The lane's two rows: `first`, and the one 8 further on.
struct Rows {
  uint first;
  uvec2 visible[2];  // keys [x, y)
  float max_score[2];
  float weight_sum[2];  // over the lane's keys
};

void load_queries(Work work, uint first, out uvec4 q[kSlices]) {
  const float scale = query_scale();
  F32x4 upper = query_row(work, first), lower = query_row(work, first + 8);
  [[unroll]] for (uint s = 0; s < kSlices; ++s) {
    const uint quad = s / 2 * 8 + lane_id() % 4 * 2 + s % 2;
    const uvec2 high = pack_halves(upper.at[quad] * scale, vec4(0.0)).xy;
    const uvec2 low = pack_halves(lower.at[quad] * scale, vec4(0.0)).xy;
    q[s] = words_of_a(high, low);
  }
}

void multiply_keys(uvec4 q[kSlices], out Fragment scores[kScores]) {
  const uint place = swizzle(lane_id() / 4, lane_id() % 4);
  [[unroll]] for (uint j = 0; j < kScores; ++j) scores[j] = Fragment(0.0);
  UNROLL for (uint s = 0; s < kSlices; ++s) {
    FragmentA x;
    set_a(x, q[s]);
    UNROLL for (uint b = 0; b < kKeyBlocks; ++b) {
      const uvec4 words = tile[(b * kSlices + s) * kSubgroupSize + (place ^ (s / 2 % 2 * kSwizzleFlip))];
      FragmentB left, right;
      set_b(left, words.xy);
      set_b(right, words.zw);
      scores[2 * b] = coopMatMulAdd(x, left, scores[2 * b]);
      scores[2 * b + 1] = coopMatMulAdd(x, right, scores[2 * b + 1]);
    }
  }
}

// Turns scores into weights. Rescales the sums of rows whose max grows.
void weigh(inout Fragment scores[kScores], inout Fragment sums[kColumns], inout Rows rows,
           uint first_key, bool masked) {
  if (params.soft_cap != 0.0) {
    [[unroll]] for (uint j = 0; j < kScores; ++j)
      [[unroll]] for (uint e = 0; e < 4; ++e) scores[j][e] = cap_score(scores[j][e]);
  }
  if (masked) {
    [[unroll]] for (uint j = 0; j < kScores; ++j) {
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        const uint key = first_key + j * 8 + lane_id() % 4 * 2 + e % 2;
        const uvec2 visible = rows.visible[e / 2];
        if (key < visible.x || key >= visible.y) scores[j][e] = kMasked;
      }
    }
  }
  float largest[2] = float[2](kNoMax, kNoMax);
  [[unroll]] for (uint j = 0; j < kScores; ++j)
    [[unroll]] for (uint e = 0; e < 4; ++e) largest[e / 2] = max(largest[e / 2], scores[j][e]);
  float shrink[2];
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    largest[r] = row_max(largest[r]);
    const bool grows = largest[r] > rows.max_score[r] + kSlack;
    shrink[r] = grows ? exp2(rows.max_score[r] - largest[r]) : 1.0;
    if (grows) rows.max_score[r] = largest[r];
    rows.weight_sum[r] *= shrink[r];
  }
  if (any_lane(min(shrink[0], shrink[1]) < 1.0)) {
    [[unroll]] for (uint n = 0; n < kColumns; ++n)
      [[unroll]] for (uint e = 0; e < 4; ++e) sums[n][e] *= shrink[e / 2];
  }
  [[unroll]] for (uint j = 0; j < kScores; ++j) {
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      scores[j][e] = exp2(scores[j][e] - rows.max_score[e / 2]);
      rows.weight_sum[e / 2] += scores[j][e];
    }
  }
}

void add_values(Fragment scores[kScores], inout Fragment sums[kColumns]) {
  FragmentA weights[kKeyBlocks];
  [[unroll]] for (uint b = 0; b < kKeyBlocks; ++b) {
    uvec4 words;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      const uint j = 2 * b + i / 2, e = i % 2 * 2;
      words[i] = packHalf2x16(vec2(scores[j][e], scores[j][e + 1]));
    }
    set_a(weights[b], words);
  }
  UNROLL for (uint n = 0; n < kColumns; ++n) {
    UNROLL for (uint b = 0; b < kKeyBlocks; b += 2) {
      const uvec4 words =
          tile[kKeyVecs + (b / 2 * kColumns + n) * kSubgroupSize + (lane_id() ^ n % 8)];
      FragmentB first, second;
      set_b(first, n / 8 % 2 == 0 ? words.xy : words.zw);
      set_b(second, n / 8 % 2 == 0 ? words.zw : words.xy);
      sums[n] = coopMatMulAdd(weights[b], first, sums[n]);
      sums[n] = coopMatMulAdd(weights[b + 1], second, sums[n]);
    }
  }
}

// Two neighbouring lanes hold four neighbouring elements of both rows: one writes the upper row's, the
// other the lower row's.
void write_sums(Work work, Fragment sums[kColumns], Rows rows) {
  const uint odd = lane_id() % 2, row = rows.first + odd * 8;
  const vec2 stats = vec2(rows.max_score[odd], rows.weight_sum[odd]);
  UNROLL for (uint n = 0; n < kColumns; ++n) {
    const vec2 upper = vec2(sums[n][0], sums[n][1]), lower = vec2(sums[n][2], sums[n][3]);
    const vec2 given = odd == 0 ? lower : upper;
    const vec2 taken = vec2(shuffle_xor(given.x, 1), shuffle_xor(given.y, 1));
    const vec4 value = odd == 0 ? vec4(upper, taken) : vec4(taken, lower);
    if (has_row(work, row))
      write_quad(work, row, n * 2 + lane_id() % 4 / 2, value, stats);
  }
}

void attend(Work work) {
  const uint first_tile = work.item.key_begin / kTokensPerBlock * kTokensPerBlock;
  KvChunk keys[kKeyLoads], values[kValueLoads];
  uint blocks[kLoadBlocks];
  find_blocks(blocks, work, first_tile);
  load_tile(keys, values, blocks, work, first_tile);
  find_blocks(blocks, work, first_tile + kKeys);
  Rows rows;
  rows.first = subgroup_id() * 16 + lane_id() / 4;
  [[unroll]] for (uint r = 0; r < 2; ++r) {
    rows.visible[r] = row_keys(work, rows.first + r * 8);
    rows.max_score[r] = kNoMax;
    rows.weight_sum[r] = 0.0;
  }
  uvec4 q[kSlices];
  load_queries(work, rows.first, q);
  Fragment sums[kColumns];
  [[unroll]] for (uint n = 0; n < kColumns; ++n) sums[n] = Fragment(0.0);
  // Tiles inside this range need no mask: every row of the workgroup sees all of it.
  const uvec2 seen_by_all = uvec2(row_keys(work, kRows - 1).x, row_keys(work, 0).y);
  store_keys(keys);
  store_values(values);
  barrier();
  for (uint first_key = first_tile; first_key < work.item.key_end; first_key += kKeys) {
    // The next tile's loads; after the last tile they are not used. matmul_wide says why loads come
    // first in the loop and stores last.
    load_tile(keys, values, blocks, work, first_key + kKeys);
    find_blocks(blocks, work, first_key + 2 * kKeys);
    Fragment scores[kScores];
    multiply_keys(q, scores);
    const bool masked = first_key < seen_by_all.x || first_key + kKeys > seen_by_all.y;
    weigh(scores, sums, rows, first_key, masked);
    add_values(scores, sums);
    barrier();
    store_keys(keys);
    store_values(values);
    barrier();
  }
  [[unroll]] for (uint r = 0; r < 2; ++r) rows.weight_sum[r] = row_sum(rows.weight_sum[r]);
  write_sums(work, sums, rows);
}

void main() {
  const Work work = find_work();
  chain_wait();
  if (work.rows > 0) {
    attend(work);
    merge_splits(work);
  }
  chain_done();
}

#endif
