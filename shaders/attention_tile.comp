// Attention over the paged KV cache for prompt chunks, on cooperative matrices (the formula is in
// attention_rows.comp). Queries, keys, values and softmax weights enter the products as f16; sums are
// f32.
//
// A workgroup processes one AttentionItem, one KV head and kRows rows, kM per subgroup. It goes over
// the keys in tiles of kKeys, shared by all subgroups; the next tile's loads are in flight while one
// tile is multiplied. A subgroup computes the scores of its rows, turns them into weights and adds
// weights times values to sums that stay in registers. Because Vulkan does not say which elements a
// lane holds, scores pass through the subgroup's own part of shared memory, where their row and key
// are known. With kDirect only those that must take this path: tiles that some row does not see
// completely, and tiles in which a row's max grows. All others become weights in their registers.
//   workgroups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// REQUIRES: full subgroups of kSubgroupSize, a multiple of kM; head_size a multiple of kN, kK and
// 16; kKeys a multiple of kN, kK, kTokensPerBlock and 8 * kSubgroupSize / kM; addresses are multiples
// of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention_tile.h"
#include "common/chain.glsl"

const uint kRows = kSubgroups * kM;

#include "common/attention_kv.glsl"
#include "common/attention_work.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge_splits.glsl"

// Shared memory is counted in vecs of 16 bytes: eight halves or four floats. Rows are padded by one vec,
// so that neighbouring rows are in different banks.
const uint kTileStride = kHeadSize / kVecHalves + 1;  // of a key or value
const uint kValues = kKeys * kTileStride;          // where the values begin
const uint kScoreStride = kKeys / 4 + 1;

shared uvec4 tile[2 * kKeys * kTileStride];  // keys, then values
shared uvec4 scores[kRows * kScoreStride];   // f32 scores, then f16 weights in the same memory
shared float shrinks[kRows];
shared float row_maxes[kRows];
shared vec2 row_stats[kRows];

const uint kDepth = kHeadSize / kK;
const uint kColumns = kHeadSize / kN;
const uint kKeyColumns = kKeys / kN;
const uint kInvocations = kSubgroups * kSubgroupSize;
const uint kLoads = DIVIDE_UP(kKeys * kRowChunks, kInvocations);  // of keys, per invocation
const uint kRowLanes = kSubgroupSize / kM;
const uint kLaneVecs = kKeys / kVecHalves / kRowLanes;  // of a row's weights, per lane
const uint kLaneQuads = 2 * kLaneVecs;                  // of a row's scores, per lane

// A row's max is raised only when a score exceeds it by this much, so that sums are rarely rescaled. A
// weight is then at most 2^kSlack, well inside f16.
const float kSlack = 8.0;

#define MatrixA coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define MatrixB coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define MatrixSum coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>
#define MatrixHalf coopmat<float16_t, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

// Orders shared memory only, so that the next tile's loads stay in flight.
void subgroup_shared_barrier() {
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                 gl_SemanticsAcquireRelease);
}

// This invocation's chunks of the next tile.
KvChunk next_keys[kLoads];
KvChunk next_values[kLoads];

// Which chunk of the tile an invocation loads: x = key, y = chunk of the row.
uvec2 load_place(uint load) {
  const uint at = load * kInvocations + gl_LocalInvocationID.x;
  return uvec2(at / kRowChunks, at % kRowChunks);
}

// Loads of keys outside the item are clamped into it, and their scores masked.
void load_tile(Work work, uint first_key) {
  [[unroll]] for (uint load = 0; load < kLoads; ++load) {
    const uvec2 at = load_place(load);
    const uint key = clamp(first_key + at.x, work.item.key_begin, work.item.key_end - 1);
    const uint row = block_rows(work, key) + key % kTokensPerBlock;
    next_keys[load] = load_chunk(params.keys, params.key_scales, row, at.y);
    next_values[load] = load_chunk(params.values, params.value_scales, row, at.y);
  }
}

void store_chunk(uint at, KvChunk chunk) {
#ifdef KV_Q8_0
  tile[at] =
      pack_halves(chunk_quad(chunk, 0) * chunk.scale, chunk_quad(chunk, 1) * chunk.scale);
  tile[at + 1] =
      pack_halves(chunk_quad(chunk, 2) * chunk.scale, chunk_quad(chunk, 3) * chunk.scale);
#else
  tile[at] = chunk.bits;
#endif
}

void store_tile() {
  [[unroll]] for (uint load = 0; load < kLoads; ++load) {
    const uvec2 at = load_place(load);
    if (at.x < kKeys) {
      const uint vec = at.x * kTileStride + at.y * (kChunkElements / kVecHalves);
      store_chunk(vec, next_keys[load]);
      store_chunk(kValues + vec, next_values[load]);
    }
  }
}

// The softmax of a row, in each of the kRowLanes lanes that share the row. Of every tile's keys a lane
// has the part number `part`.
struct Row {
  uint index, part;
  uvec2 visible;  // keys [x, y)
  float max_score;
  float weight_sum;  // over the lane's keys
};

// Loads the queries of a subgroup's rows through its part of `scores`, kKeys columns at a time.
void load_queries(Work work, uint first_row, out MatrixA q[kDepth]) {
  const float scale = query_scale();
  const uint row_vecs = kKeys / kVecHalves;
  [[unroll]] for (uint column = 0; column < kHeadSize; column += kKeys) {
    for (uint at = gl_SubgroupInvocationID; at < kM * row_vecs; at += kSubgroupSize) {
      const uint row = first_row + at / row_vecs;
      const uint vec = at % row_vecs;
      const uint quad = column / 4 + 2 * vec;
      if (quad < kHeadSize / 4) {
        F32x4 query = query_row(work, row);
        scores[row * kScoreStride + vec] =
            pack_halves(query.at[quad] * scale, query.at[quad + 1] * scale);
      }
    }
    subgroup_shared_barrier();
    [[unroll]] for (uint k = 0; k < kKeys / kK; ++k) {
      if (column + k * kK < kHeadSize)
        coopMatLoad(q[column / kK + k], scores, first_row * kScoreStride + k * (kK / kVecHalves),
                    kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroup_shared_barrier();
  }
}

void multiply_keys(MatrixA q[kDepth], out MatrixSum products[kKeyColumns]) {
  [[unroll]] for (uint n = 0; n < kKeyColumns; ++n) products[n] = MatrixSum(0.0);
  [[unroll]] for (uint d = 0; d < kDepth; ++d) {
    [[unroll]] for (uint n = 0; n < kKeyColumns; ++n) {
      MatrixB keys;
      coopMatLoad(keys, tile, n * kN * kTileStride + d * (kK / kVecHalves), kTileStride,
                  gl_CooperativeMatrixLayoutColumnMajor);
      products[n] = coopMatMulAdd(q[d], keys, products[n]);
    }
  }
}

void add_values(uint first_row, inout MatrixSum sums[kColumns]) {
  [[unroll]] for (uint k = 0; k < kKeys / kK; ++k) {
    MatrixA weight;
    coopMatLoad(weight, scores, first_row * kScoreStride + k * (kK / kVecHalves), kScoreStride,
                gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint n = 0; n < kColumns; ++n) {
      MatrixB values;
      coopMatLoad(values, tile, kValues + k * kK * kTileStride + n * (kN / kVecHalves), kTileStride,
                  gl_CooperativeMatrixLayoutRowMajor);
      sums[n] = coopMatMulAdd(weight, values, sums[n]);
    }
  }
}

// The largest difference between one of the lane's scores and its row's max.
float most_above(MatrixSum products[kKeyColumns], MatrixSum maxes) {
  float most = kNoMax;
  [[unroll]] for (uint n = 0; n < kKeyColumns; ++n) {
    [[unroll]] for (uint i = 0; i < maxes.length(); ++i) most = max(most, products[n][i] - maxes[i]);
  }
  return most;
}

// Turns scores into weights in their registers. Adds the weights up, column by column.
void weigh_products(MatrixSum products[kKeyColumns], MatrixSum maxes, uint first_row,
                    inout MatrixSum weight_sums) {
  [[unroll]] for (uint n = 0; n < kKeyColumns; ++n) {
    [[unroll]] for (uint i = 0; i < maxes.length(); ++i)
      products[n][i] = exp2(products[n][i] - maxes[i]);
    weight_sums += products[n];
    coopMatStore(MatrixHalf(products[n]), scores, first_row * kScoreStride + n * (kN / kVecHalves),
                 kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
  }
}

// Turns scores into weights, by the lanes of their rows. Returns the factor that the row's sums must be
// multiplied by: less than 1 if its max grows.
float weigh_scores(vec4 score[kLaneQuads], uint first_key, bool masked, inout Row row) {
  if (params.soft_cap != 0.0) {
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) score[i] = cap_scores(score[i]);
  }
  if (masked) {
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) {
      const uvec4 key = first_key + (row.part * kLaneQuads + i) * 4 + uvec4(0, 1, 2, 3);
      score[i] = mix(score[i], vec4(kMasked),
                     bvec4(uvec4(lessThan(key, uvec4(row.visible.x))) |
                           uvec4(greaterThanEqual(key, uvec4(row.visible.y)))));
    }
  }
  vec4 largest_of = vec4(kNoMax);
  [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) largest_of = max(largest_of, score[i]);
  float largest = max(max(largest_of.x, largest_of.y), max(largest_of.z, largest_of.w));
  [[unroll]] for (uint offset = 1; offset < kRowLanes; offset *= 2)
    largest = max(largest, subgroupShuffleXor(largest, offset));
  const bool grows = largest > row.max_score + kSlack;
  const float shrink = grows ? exp2(row.max_score - largest) : 1.0;
  if (grows) row.max_score = largest;
  row.weight_sum *= shrink;
  [[unroll]] for (uint i = 0; i < kLaneVecs; ++i) {
    const vec4 low = exp2(score[2 * i] - row.max_score);
    const vec4 high = exp2(score[2 * i + 1] - row.max_score);
    row.weight_sum += dot(low + high, vec4(1));
    scores[row.index * kScoreStride + row.part * kLaneVecs + i] = pack_halves(low, high);
  }
  return shrink;
}

// Writes the sums out through the scores' memory, kKeyColumns fragments at a time.
void write_sums(Work work, uint first_row, MatrixSum sums[kColumns]) {
  [[unroll]] for (uint first = 0; first < kColumns; first += kKeyColumns) {
    subgroup_shared_barrier();
    [[unroll]] for (uint n = 0; n < kKeyColumns; ++n) {
      if (first + n < kColumns)
        coopMatStore(sums[first + n], scores, first_row * kScoreStride + n * (kN / 4), kScoreStride,
                     gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroup_shared_barrier();
    for (uint at = gl_SubgroupInvocationID; at < kM * (kKeys / 4); at += kSubgroupSize) {
      const uint row = first_row + at / (kKeys / 4);
      const uint column = at % (kKeys / 4);
      const uint quad = first * (kN / 4) + column;
      if (has_row(work, row) && quad < kHeadSize / 4)
        write_quad(work, row, quad, uintBitsToFloat(scores[row * kScoreStride + column]),
                     row_stats[row]);
    }
  }
}

void attend(Work work) {
  // Every subgroup executes every barrier, also if it has no rows or takes the direct path: some drivers
  // turn even a subgroup barrier into a barrier of the whole workgroup.
  const uint first_row = gl_SubgroupID * kM;
  const uint first_tile = work.item.key_begin / kTokensPerBlock * kTokensPerBlock;
  load_tile(work, first_tile);
  MatrixA q[kDepth];
  load_queries(work, first_row, q);

  MatrixSum sums[kColumns];
  [[unroll]] for (uint n = 0; n < kColumns; ++n) sums[n] = MatrixSum(0.0);
  Row row;
  row.index = first_row + gl_SubgroupInvocationID / kRowLanes;
  row.part = gl_SubgroupInvocationID % kRowLanes;
  row.visible = row_keys(work, row.index);
  row.max_score = kNoMax;
  row.weight_sum = 0.0;
  // For the direct path: the rows' maxes in every column, and the weights that are in no lane's
  // weight_sum.
  MatrixSum maxes = MatrixSum(kNoMax), weight_sums = MatrixSum(0.0);
  // Tiles inside this range need no mask: every row of the workgroup sees all of it.
  const uvec2 seen_by_all = uvec2(row_keys(work, kRows - 1).x, row_keys(work, 0).y);

  for (uint first_key = first_tile; first_key < work.item.key_end; first_key += kKeys) {
    barrier();  // other subgroups may still read the previous tile
    store_tile();
    barrier();
    if (first_key + kKeys < work.item.key_end) load_tile(work, first_key + kKeys);

    MatrixSum products[kKeyColumns];
    multiply_keys(q, products);
    const bool masked = first_key < seen_by_all.x || first_key + kKeys > seen_by_all.y;
    bool direct = kDirect != 0 && !masked && params.soft_cap == 0.0;
    if (direct) direct = !subgroupAny(most_above(products, maxes) > kSlack);

    if (!direct) {
      [[unroll]] for (uint n = 0; n < kKeyColumns; ++n)
        coopMatStore(products[n], scores, first_row * kScoreStride + n * (kN / 4), kScoreStride,
                     gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroup_shared_barrier();
    vec4 score[kLaneQuads];
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i)
      score[i] = uintBitsToFloat(scores[row.index * kScoreStride + row.part * kLaneQuads + i]);
    subgroup_shared_barrier();  // weights overwrite scores
    bool any_grows = false;
    if (direct) {
      weigh_products(products, maxes, first_row, weight_sums);
    } else {
      const float shrink = weigh_scores(score, first_key, masked, row);
      any_grows = subgroupAny(shrink < 1.0);
      if (any_grows && row.part == 0) {
        shrinks[row.index] = shrink;
        row_maxes[row.index] = row.max_score;
      }
    }
    subgroup_shared_barrier();

    if (any_grows) {
      // Stride 0: every column holds the rows' factors.
      MatrixSum factors;
      coopMatLoad(factors, shrinks, first_row, 0, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint n = 0; n < kColumns; ++n) sums[n] *= factors;
      weight_sums *= factors;
      coopMatLoad(maxes, row_maxes, first_row, 0, gl_CooperativeMatrixLayoutColumnMajor);
    }
    add_values(first_row, sums);
  }

  if (kDirect != 0) {
    subgroup_shared_barrier();
    coopMatStore(weight_sums, scores, first_row * kScoreStride, kScoreStride,
                 gl_CooperativeMatrixLayoutRowMajor);
    subgroup_shared_barrier();
    for (uint i = row.part; i < kN / 4; i += kRowLanes)
      row.weight_sum += dot(uintBitsToFloat(scores[row.index * kScoreStride + i]), vec4(1));
  }
  [[unroll]] for (uint offset = 1; offset < kRowLanes; offset *= 2)
    row.weight_sum += subgroupShuffleXor(row.weight_sum, offset);
  if (row.part == 0) row_stats[row.index] = vec2(row.max_score, row.weight_sum);
  write_sums(work, first_row, sums);
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
