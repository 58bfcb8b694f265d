// Where a workgroup of attention is: its item, its KV head, its query rows, and where their results
// go. The rows of a tile are tokens x heads of the group, heads fastest; where a tile has more than
// kRows of them, several workgroups in y share it.
//
// Include after params/attention.h; needs kHeadSize, kRows, kHeads, kKvHeads and kForm, the form of
// the result (common/row_form.glsl).
#ifndef HEARTH_ATTENTION_WORK_GLSL
#define HEARTH_ATTENTION_WORK_GLSL
#include "common/row_form.glsl"

const uint kHeadsPerKvHead = kHeads / kKvHeads;  // heads that share a KV head
const uint kRowVectors = kHeadSize / 4;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Items {
  AttentionItem at[];
};

struct Place {
  AttentionItem item;
  uint64_t block_table;
  uint share;  // of the item, which has as many as the dispatch is high
  uint kv_head;
  uint first_row;  // of this workgroup, in the tile
  uint rows;       // of the tile; 0: there is nothing to do
};

Place find_place() {
  Place place;
  // Groups start in the order of their numbers, and the longest items come first in the list: all
  // heads of an item before the next one, so that the last groups to start are short.
  const uint number = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  place.item = Items(params.items).at[number / gl_NumWorkGroups.y];
  place.block_table = params.block_tables + uint64_t(place.item.block_table) * 4;
  const uint parts = gl_NumWorkGroups.y / kKvHeads;
  place.share = number % gl_NumWorkGroups.y;
  place.kv_head = place.share / parts;
  place.first_row = place.share % parts * kRows;
  place.rows = place.item.tokens * kHeadsPerKvHead;
  if (place.first_row >= place.rows) place.rows = 0;
  return place;
}

bool has_row(Place place, uint row) { return place.first_row + row < place.rows; }
uint row_token(Place place, uint row) { return (place.first_row + row) / kHeadsPerKvHead; }
uint row_head(Place place, uint row) {
  return place.kv_head * kHeadsPerKvHead + (place.first_row + row) % kHeadsPerKvHead;
}

// The row's query. Rows past the last repeat it, so that loads stay inside.
F32x4 query_row(Place place, uint row) {
  const uint last = place.rows - 1 - place.first_row;
  const uint at = (place.item.first_row + row_token(place, min(row, last))) * kHeads +
                  row_head(place, min(row, last));
  return F32x4(params.q + uint64_t(at) * (kHeadSize * 4));
}

// The keys of the item that the row sees: [x, y).
uvec2 row_keys(Place place, uint row) {
  const uint end = place.item.first_position + row_token(place, row) + 1;
  const uint begin = params.window == 0 || params.window >= end ? 0 : end - params.window;
  return uvec2(max(begin, place.item.key_begin), min(end, place.item.key_end));
}

// The key, or where it is outside the item the nearest one inside: loads stay there, and are masked.
uint inside(Place place, uint key) {
  return clamp(key, place.item.key_begin, place.item.key_end - 1);
}

// The first of the kBlockTokens KV rows of the block that holds `key`.
uint block_rows(Place place, uint key) {
  const uint block = U32(place.block_table).at[key / kBlockTokens];
  return (block * kKvHeads + place.kv_head) * kBlockTokens;
}

void write_result(Place place, uint row, uint vector, vec4 value) {
  const uint at = (place.item.first_row + row_token(place, row)) * kHeads + row_head(place, row);
  if (kForm == kFormFloats)
    F32x4(params.result + uint64_t(at) * (kHeadSize * 4)).at[vector] = value;
  else
    write_halves(params.result, at * kRowVectors + vector, value);
}

// What a split of the place's tile leaves of a row: its sum, and after it max and sum of weights.
F32x4 partial_row(Place place, uint split, uint row) {
  const uint slot = place.item.partial + split * place.item.tokens + row_token(place, row);
  const uint at = slot * kHeads + row_head(place, row);
  return F32x4(params.counts + params.partials + uint64_t(at) * ((kRowVectors + 1) * 16));
}

// Vector `vector` of a row's sum: the result, or this split's part of it. `stats` are the max and
// the sum of weights. REQUIRES: has_row().
void write_vector(Place place, uint row, uint vector, vec4 sum, vec2 stats) {
  if (place.item.splits == 1) {
    write_result(place, row, vector, sum * (1.0 / stats.y));
  } else {
    F32x4 to = partial_row(place, place.item.split, row);
    to.at[vector] = sum;
    if (vector == 0) to.at[kRowVectors] = vec4(stats, 0.0, 0.0);
  }
}

#endif
