// What a workgroup of attention works on: its item, its KV head, its query rows, and where their results
// go. The rows of a tile are tokens x the query heads that share the KV head, heads fastest; if a tile
// has more than kRows of them, several workgroups in y process it.
//
// Include after params/attention.h; needs kHeadSize, kRows, kHeads, kKvHeads and kForm, the form of
// the result (common/row_form.glsl).
#ifndef HEARTH_ATTENTION_WORK_GLSL
#define HEARTH_ATTENTION_WORK_GLSL
#include "common/row_form.glsl"

const uint kHeadsPerKvHead = kHeads / kKvHeads;  // query heads
const uint kRowQuads = kHeadSize / 4;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Items {
  AttentionItem at[];
};

struct Work {
  AttentionItem item;
  uint64_t block_table;
  uint workgroup;  // index within the item, which has gl_NumWorkGroups.y
  uint kv_head;
  uint first_row;  // of this workgroup, in the tile
  uint rows;       // of the tile; 0: nothing to do
#ifdef DEALT
  bool sinks_elsewhere;  // another rank counts them
#endif
};

Work find_work() {
  Work work;
  // Workgroups start in the order of their numbers, and the longest items come first in the list. So all
  // heads of an item come before the next item, and the last workgroups to start are short.
  const uint number = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  work.item = Items(params.items).at[number / gl_NumWorkGroups.y];
#ifdef DEALT
  work.sinks_elsewhere = (work.item.partial & kSinksElsewhere) != 0;
  work.item.partial &= ~kSinksElsewhere;
#endif
  work.block_table = params.block_tables + uint64_t(work.item.block_table) * 4;
  const uint parts = gl_NumWorkGroups.y / kKvHeads;
  work.workgroup = number % gl_NumWorkGroups.y;
  work.kv_head = work.workgroup / parts;
  work.first_row = work.workgroup % parts * kRows;
  work.rows = work.item.tokens * kHeadsPerKvHead;
  if (work.first_row >= work.rows) work.rows = 0;
  return work;
}

bool has_row(Work work, uint row) { return work.first_row + row < work.rows; }
uint row_token(Work work, uint row) { return (work.first_row + row) / kHeadsPerKvHead; }
uint row_head(Work work, uint row) {
  return work.kv_head * kHeadsPerKvHead + (work.first_row + row) % kHeadsPerKvHead;
}

// The row's query. Rows past the last read the last one again, so that loads stay in bounds.
F32x4 query_row(Work work, uint row) {
  const uint last = work.rows - 1 - work.first_row;
  const uint at = (work.item.first_row + row_token(work, min(row, last))) * kHeads +
                  row_head(work, min(row, last));
  return F32x4(params.q + uint64_t(at) * (kHeadSize * 4));
}

#ifdef TREE_ROWS
#include "common/tree_rows.glsl"

// The tree keys of the item that a row sees: those at `begin` + i for the bits i of the mask.
struct TreeKeys {
  uint begin;
  uint mask;
};

bool sees_tree_key(TreeKeys tree, uint key) {
  return key - tree.begin < 32 && (tree.mask >> (key - tree.begin & 31) & 1) != 0;
}

// Bits from `begin` to `end`, where 32 and more are past the last.
uint bit_range(uint begin, uint end) {
  const uint below_end = end < 32 ? (1u << end) - 1 : ~0u;
  const uint below_begin = begin < 32 ? (1u << begin) - 1 : ~0u;
  return below_end & ~below_begin;
}

// The keys of the item that the row sees: [x, y), and keys of its tree. Rows past the last are like the
// last, so that loads stay in bounds.
uvec2 row_keys(Work work, uint row, out TreeKeys tree) {
  const uint token = min(row_token(work, row), work.item.tokens - 1);
  const uint position = work.item.first_position + token;
  const uint mask = U32(params.table).at[work.item.first_row + token];
  const uint path_end = path_position(mask, position) + 1;
  const uint begin = params.window == 0 || params.window >= path_end ? 0 : path_end - params.window;
  tree = TreeKeys(position + 1, mask);
  if (mask != 0) {
    tree.begin = tree_begin(mask, position);
    // A window that is shorter than the path leaves its last tokens.
    if (params.window != 0)
      while (bitCount(tree.mask) > params.window) tree.mask &= tree.mask - 1;
    tree.mask &= bit_range(max(work.item.key_begin, tree.begin) - tree.begin,
                           max(work.item.key_end, tree.begin) - tree.begin);
  }
  return uvec2(max(begin, work.item.key_begin), min(tree.begin, work.item.key_end));
}
#else
// The keys of the item that the row sees: [x, y).
uvec2 row_keys(Work work, uint row) {
  const uint end = work.item.first_position + row_token(work, row) + 1;
  const uint begin = params.window == 0 || params.window >= end ? 0 : end - params.window;
  return uvec2(max(begin, work.item.key_begin), min(end, work.item.key_end));
}
#endif

// `key` clamped into the item, so that loads stay in bounds. The scores of keys outside are masked.
uint inside(Work work, uint key) {
  return clamp(key, work.item.key_begin, work.item.key_end - 1);
}

// The first of the kTokensPerBlock KV rows of the block that holds `key`.
uint block_rows(Work work, uint key) {
  const uint block = U32(work.block_table).at[key / kTokensPerBlock];
  return (block * kKvHeads + work.kv_head) * kTokensPerBlock;
}

void write_result(Work work, uint row, uint quad, vec4 value) {
  const uint at = (work.item.first_row + row_token(work, row)) * kHeads + row_head(work, row);
  if (kForm == kFormFloats)
    F32x4(params.result + uint64_t(at) * (kHeadSize * 4)).at[quad] = value;
  else
    write_halves(params.result, at * kRowQuads + quad, value);
}

// The partial result of a row and a split: the sum, followed by max and sum of weights.
F32x4 partial_row(Work work, uint split, uint row) {
  const uint slot = work.item.partial + split * work.item.tokens + row_token(work, row);
  const uint at = slot * kHeads + row_head(work, row);
  return F32x4(params.counts + params.partials + uint64_t(at) * ((kRowQuads + 1) * 16));
}

// Writes quad `quad` of a row whose keys have all been added up, given the max of its scores and the sum of
// its weights. With SINKS every head has one more logit, without a value, which adds to that sum alone.
#ifdef DEALT
void write_row(Work work, uint row, uint quad, vec4 sum, float max_score, float weight_sum) {
#ifdef SINKS
  if (!work.sinks_elsewhere) {
    const float sink = F32(params.q_norm).at[row_head(work, row)] * 1.4426950408889634;
    const float new_max = max(max_score, sink), shrink = exp2(max_score - new_max);
    sum *= shrink;
    weight_sum = weight_sum * shrink + exp2(sink - new_max);
    max_score = new_max;
  }
#endif
  const uint at = (work.item.first_row + row_token(work, row)) * kHeads + row_head(work, row);
  F32x4 to = F32x4(params.result + uint64_t(at) * ((kHeadSize + kAttentionStats) * 4));
  to.at[quad] = sum;
  if (quad == 0) to.at[kRowQuads] = vec4(max_score, weight_sum, 0.0, 0.0);
}
#else
#ifdef SINKS
float row_divisor(Work work, uint row, float max_score, float weight_sum) {
  const float sink = F32(params.q_norm).at[row_head(work, row)];
  return weight_sum + exp2(sink * 1.4426950408889634 - max_score);
}
#else
#define row_divisor(work, row, max_score, weight_sum) weight_sum
#endif
#define write_row(work, row, quad, sum, max_score, weight_sum) \
  write_result(work, row, quad, sum * (1.0 / row_divisor(work, row, max_score, weight_sum)))
#endif

// Writes quad `quad` of a row's sum: the result, or this split's partial result. `stats` are the max and
// the sum of weights. REQUIRES: has_row().
void write_quad(Work work, uint row, uint quad, vec4 sum, vec2 stats) {
  if (work.item.splits == 1) {
    write_row(work, row, quad, sum, stats.x, stats.y);
  } else {
    F32x4 to = partial_row(work, work.item.split, row);
    to.at[quad] = sum;
    if (quad == 0) to.at[kRowQuads] = vec4(stats, 0.0, 0.0);
  }
}

#endif
