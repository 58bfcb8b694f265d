// Where a workgroup of attention is: its item, its KV head, its query rows, and where their results
// go. The rows of a tile are tokens x heads of the group, heads fastest; where a tile has more than
// kRows of them, several workgroups in y share it.
//
// Include after params/attention.h; needs kHeadSize, kRows and kForm, the form of the result
// (common/row_form.glsl).
#ifndef HEARTH_ATTENTION_PLACE_GLSL
#define HEARTH_ATTENTION_PLACE_GLSL
#include "common/row_form.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Items {
  AttentionItem at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Sequences {
  StepSequence at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate writeonly buffer Stats { vec2 at[]; };

struct Place {
  AttentionItem item;
  uint first_batch_row;  // of the tile
  uint first_position;   // of the tile
  uint64_t block_table;
  uint kv_head;
  uint group;      // heads that share the KV head
  uint first_row;  // of this workgroup, in the tile
  uint rows;       // of the tile; 0: there is nothing to do
};

Place find_place() {
  Place place;
  place.item = Items(params.items).at[gl_WorkGroupID.x];
  const uint parts = gl_NumWorkGroups.y / params.kv_heads;
  place.kv_head = gl_WorkGroupID.y / parts;
  place.group = params.heads / params.kv_heads;
  place.first_row = gl_WorkGroupID.y % parts * kRows;
  place.rows = place.item.tokens * place.group;
  if (place.first_row >= place.rows) place.rows = 0;
  if (place.rows == 0) return place;
  const StepSequence sequence = Sequences(params.sequences).at[place.item.sequence];
  place.first_batch_row = sequence.first_row + place.item.first_token;
  place.first_position = sequence.first_position + place.item.first_token;
  place.block_table = params.block_tables + uint64_t(sequence.block_table) * 4;
  return place;
}

bool has_row(Place place, uint row) { return place.first_row + row < place.rows; }
uint row_token(Place place, uint row) { return (place.first_row + row) / place.group; }
uint row_head(Place place, uint row) {
  return place.kv_head * place.group + (place.first_row + row) % place.group;
}

// The row's query. Rows past the last repeat it, so that loads stay inside.
F32x4 query_row(Place place, uint row) {
  const uint last = place.rows - 1 - place.first_row;
  const uint at = (place.first_batch_row + row_token(place, min(row, last))) * params.heads +
                  row_head(place, min(row, last));
  return F32x4(params.q + uint64_t(at) * (kHeadSize * 4));
}

// The keys of the item that the row sees: [x, y).
uvec2 row_keys(Place place, uint row) {
  const uint end = place.first_position + row_token(place, row) + 1;
  const uint begin = params.window == 0 || params.window >= end ? 0 : end - params.window;
  return uvec2(max(begin, place.item.key_begin), min(end, place.item.key_end));
}

// The first of the kBlockTokens KV rows of the block that holds `key`.
uint block_rows(Place place, uint key) {
  const uint block = U32(place.block_table).at[key / kBlockTokens];
  return (block * params.kv_heads + place.kv_head) * kBlockTokens;
}

// Vector `vector` of a head of the result. `at` counts the heads of all rows.
void write_result(uint64_t result, uint at, uint head_quads, uint vector, vec4 value) {
  if (kForm == kFormFloats)
    F32x4(result + uint64_t(at) * (head_quads * 16)).at[vector] = value;
  else
    write_halves(result, at * head_quads + vector, value);
}

// Vector `vector` of a row's sum: the result, or what the merge kernel makes it from. `stats` are
// the max and the sum of weights. REQUIRES: has_row().
void write_vector(Place place, uint row, uint vector, vec4 sum, vec2 stats) {
  const uint head = row_head(place, row);
  const uint token = row_token(place, row);
  if (place.item.partial == kNoPartial) {
    const uint at = (place.first_batch_row + token) * params.heads + head;
    write_result(params.result, at, kHeadSize / 4, vector, sum * (1.0 / stats.y));
  } else {
    const uint at = (place.item.partial + token) * params.heads + head;
    F32x4(params.partial_sums + uint64_t(at) * (kHeadSize * 4)).at[vector] = sum;
    if (vector == 0) Stats(params.partial_stats).at[at] = stats;
  }
}

#endif
