// What rope_kv.comp does, by the workgroup of attention_rows.comp that needs it: for a token that is
// its sequence's only one in the step, and all heads that share a KV head.
//
// Include after attention_run.glsl; needs kRoped, what rope_head.glsl needs, and the strides and
// places of q, k and v as attention_rows.comp has them.
#ifndef HEARTH_ATTENTION_ROPE_GLSL
#define HEARTH_ATTENTION_ROPE_GLSL
#include "common/fences.glsl"

uint part_quads() { return params.part_rows * (kQStride / 4); }
#include "common/rope_head.glsl"

shared vec4 shared_q[kRoped != 0 ? kRows * kRowVectors : 1];

uint token_row;  // where the token's key and value go in the cache

// All that need not wait for the projection: what is in the cache from earlier steps, too.
void begin_token(Place place, out Run run) {
  position = place.item.first_position;
  token_row = block_rows(place, position) + position % kBlockTokens;
  load_first_run(place, run);
}

// The place's queries into shared memory, its token's key and value into the cache: a subgroup a
// head.
void rope_token(Place place, inout Run run) {
  const uint64_t row = place.item.first_row;
  const uint tasks = kGroup + (place.item.key_end > position ? 2 : 0);
  for (uint task = gl_SubgroupID; task < tasks; task += kSubgroups) {
    if (task < kGroup) {
      const uint first = row_head(place, task) * kHeadSize;
      open_head(params.q + (row * kQStride + first) * 4, true, params.q_norm);
      for (uint i = gl_SubgroupInvocationID; i < kRowVectors; i += kSubgroupSize)
        shared_q[task * kRowVectors + i] = result_quad(i);
      continue;
    }
    const bool is_key = task == kGroup;
    const uint64_t segment = uint64_t(params.part_rows) * (is_key ? kKBehind : kVBehind);
    const uint first = (is_key ? kKColumn : kVColumn) + place.kv_head * kHeadSize;
    open_head(params.q + (segment + row * (is_key ? kKStride : kVStride) + first) * 4, is_key,
              params.k_norm);
    write_cache(is_key ? params.keys : params.values,
                is_key ? params.key_scales : params.value_scales, token_row);
  }
  meet_group();
  // Where it is in the first run, it was not there yet when that was loaded.
  [[unroll]] for (uint k = 0; k < kRun; ++k) {
    if (min(run.first + k, place.item.key_end - 1) == position) {
      load_key(run, k, token_row);
      load_value(run, k, token_row);
    }
  }
}

#endif
