// Attention over the paged cache, a few query rows at a time: decoding on GPUs, and prompt chunks
// there too where attention_tile cannot run.
//
//   result[t, h] = sum over keys j that t sees of softmax(score[t, h, j]) * value[j, h / group]
//   score[t, h, j] = scale * q[t, h] . key[j, h / group], soft-capped where asked for
//
// A workgroup takes an AttentionItem and one KV head; its rows are tokens x heads of the group, so
// that a key is read once for all of them. kLanes neighbouring lanes make a stream: each holds
// kSliceChunks chunks of the head, and a stream goes over runs of kRun keys that no other stream
// has, with a softmax of its own. Streams are merged at the end: in registers within a subgroup, in
// shared memory across subgroups. A group of one subgroup meets no barrier.
//   groups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// With kRoped q is as the projection left it, and k and v lie after it: the kernel does what
// rope_kv.comp does for its rows, and whoever sees the last key puts key and value into the cache.
// REQUIRES: full subgroups of kSubgroupSize, a multiple of kLanes; kRun divides kBlockTokens;
// addresses are multiples of 16, head_size of 16. With kRoped also what rope_kv.comp does, tiles of
// one token, and one group for all heads that share a KV head.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention.h"
#include "common/chain.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kSubgroupSize = 32;
layout(constant_id = 2) const uint kSubgroups = 4;  // in a group
layout(constant_id = 3) const uint kHeadSize = 128;
layout(constant_id = 4) const uint kRows = 4;    // query rows of a group
layout(constant_id = 5) const uint kLanes = 16;  // of a stream, a power of two
layout(constant_id = 6) const uint kRun = 8;     // keys whose loads a stream issues together
layout(constant_id = 7) const uint kOverlap = 0;  // 1: the next run is loaded while one is used
layout(constant_id = 8) const uint kForm = 0;     // of the result
layout(constant_id = 9) const uint kHeads = 1;
layout(constant_id = 10) const uint kKvHeads = 1;
layout(constant_id = 11) const float kScale = 1.0;
layout(constant_id = 12) const uint kRoped = 0;
// With kRoped, as in rope_kv.comp:
layout(constant_id = 13) const uint kRopeDims = 64;
layout(constant_id = 14) const uint kAdjacent = 0;
layout(constant_id = 15) const uint kHeadNorms = 0;
layout(constant_id = 16) const uint kLaneQuads = 1;
layout(constant_id = 17) const uint kParts = 1;
layout(constant_id = 18) const uint kQStride = 0;
layout(constant_id = 19) const uint kKStride = 0;
layout(constant_id = 20) const uint kVStride = 0;
layout(constant_id = 21) const float kEpsilon = 1e-6;
// Where k and v are: in a row of their segment, and how many floats a row the segments before have.
layout(constant_id = 22) const uint kKColumn = 0;
layout(constant_id = 23) const uint kKBehind = 0;
layout(constant_id = 24) const uint kVColumn = 0;
layout(constant_id = 25) const uint kVBehind = 0;

#include "common/attention_kv.glsl"
#include "common/attention_place.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge.glsl"
#include "common/attention_run.glsl"
#include "common/attention_rope.glsl"
#include "common/attention_softmax.glsl"

shared vec4 shared_sums[kSubgroups > 1 ? kSubgroups * kRows * kRowVectors : 1];
shared vec2 shared_stats[kSubgroups > 1 ? kSubgroups * kRows : 1];

// Vector `vector` of a row's query.
vec4 query_vector(Place place, uint row, uint vector) {
  if (kRoped != 0) return shared_q[min(row, kGroup - 1) * kRowVectors + vector];
  return query_row(place, row).at[vector];
}

// Takes every key of the item that is this stream's. `run` is the first.
void take_item(Place place, Run run, Rows rows, inout Softmax soft) {
  // A subgroup's streams go on as long as its first has a run.
  const uint last_key = place.item.key_end - 1;
  uint base = place.item.key_begin / kRun * kRun + gl_SubgroupID * kStreams * kRun;
  if (kOverlap != 0) {
    for (; base <= last_key; base += 2 * kStep) {
      Run next;
      load_run(place, run.first + kStep, next);
      take_run(run, rows, soft);
      if (base + kStep > last_key) break;
      load_run(place, next.first + kStep, run);
      take_run(next, rows, soft);
    }
  } else if (base <= last_key) {
    take_run(run, rows, soft);
    for (base += kStep; base <= last_key; base += kStep) {
      load_run(place, run.first + kStep, run);
      take_run(run, rows, soft);
    }
  }
}

void attend(Place place, Run run) {
  const uint lane = gl_SubgroupInvocationID % kLanes;
  const uint stream = gl_SubgroupID * kStreams + gl_SubgroupInvocationID / kLanes;

  // The queries' slices, and what each row may see.
  Rows rows;
  const float scale = query_scale();
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    rows.visible[r] = row_keys(place, r);
    [[unroll]] for (uint c = 0; c < kSliceChunks; ++c) {
      const uint chunk = slice_chunk(c);
      [[unroll]] for (uint i = 0; i < kChunkVectors; ++i) {
        rows.q[r * kSliceVectors + c * kChunkVectors + i] =
            chunk < kRowChunks ? query_vector(place, r, chunk * kChunkVectors + i) * scale
                               : vec4(0);
      }
    }
  }

  Softmax soft;
  begin_softmax(soft);
  take_item(place, run, rows, soft);
  join_streams(soft);

  if (kSubgroups == 1) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      if (stream != 0 || !has_row(place, r)) break;
      [[unroll]] for (uint c = 0; c < kSliceChunks; ++c) {
        const uint chunk = slice_chunk(c);
        if (chunk >= kRowChunks) break;
        [[unroll]] for (uint i = 0; i < kChunkVectors; ++i)
          write_vector(place, r, chunk * kChunkVectors + i,
                       soft.sums[r * kSliceVectors + c * kChunkVectors + i],
                       vec2(soft.max_score[r], soft.weight_sum[r]));
      }
    }
    return;
  }

  // The group's subgroups become one.
  if (gl_SubgroupInvocationID < kLanes) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      const uint row = gl_SubgroupID * kRows + r;
      if (lane == 0) shared_stats[row] = vec2(soft.max_score[r], soft.weight_sum[r]);
      [[unroll]] for (uint c = 0; c < kSliceChunks; ++c) {
        const uint chunk = slice_chunk(c);
        if (chunk < kRowChunks) {
          [[unroll]] for (uint i = 0; i < kChunkVectors; ++i)
            shared_sums[row * kRowVectors + chunk * kChunkVectors + i] =
                soft.sums[r * kSliceVectors + c * kChunkVectors + i];
        }
      }
    }
  }
  barrier();
  for (uint at = gl_LocalInvocationID.x; at < kRows * kRowVectors; at += gl_WorkGroupSize.x) {
    const uint r = at / kRowVectors;
    if (!has_row(place, r)) break;
    float new_max = kNoMax;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s)
      new_max = max(new_max, shared_stats[s * kRows + r].x);
    vec4 sum = vec4(0);
    float weights = 0.0;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s) {
      const vec2 stats = shared_stats[s * kRows + r];
      const float shrink = exp2(stats.x - new_max);
      weights += stats.y * shrink;
      sum += shared_sums[s * kRows * kRowVectors + at] * shrink;
    }
    write_vector(place, r, at % kRowVectors, sum, vec2(new_max, weights));
  }
}

void main() {
  const Place place = find_place();
  Run run;
  Turns turns;
  if (kRoped != 0 && place.rows > 0) begin_token(place, turns, run);
  chain_wait();
  if (place.rows > 0) {
    if (kRoped != 0)
      rope_token(place, turns, run);
    else
      load_first_run(place, run);
    attend(place, run);
    merge_splits(place);
  }
  chain_done();
}
