// How a stream of attention_rows.comp, kStreamLanes neighbouring lanes, loads keys and values: in runs of
// kRun keys, of which each lane has kLaneChunks chunks. All loads of a run are in flight together.
//
// Include after attention_rope.glsl.
#ifndef HEARTH_ATTENTION_RUN_GLSL
#define HEARTH_ATTENTION_RUN_GLSL

const uint kLaneChunks = DIVIDE_UP(kRowChunks, kStreamLanes);
const uint kLaneChunkQuads = kLaneChunks * kChunkQuads;
const uint kStreams = kSubgroupSize / kStreamLanes;  // of a subgroup
const uint kStep = kSubgroups * kStreams * kRun;  // keys from a stream's run to its next

// A stream's run: its first key, its keys and values. Loads of keys outside the item are clamped into
// it, and their scores masked.
struct Run {
  uint first;
  KvChunk keys[kRun * kLaneChunks];
  KvChunk values[kRun * kLaneChunks];
};

uint next_kv_row;  // the first KV row of the block that holds the next run to load

// Lanes past the end of a row load its last chunk again; their queries are zero and their sums dropped.
uint lane_chunk(uint c) { return gl_SubgroupInvocationID % kStreamLanes + c * kStreamLanes; }

void load_key(inout Run run, uint k, uint kv_row) {
  [[unroll]] for (uint c = 0; c < kLaneChunks; ++c)
    run.keys[k * kLaneChunks + c] = load_chunk(params.keys, params.key_scales, kv_row,
                                                min(lane_chunk(c), kRowChunks - 1));
}

void load_value(inout Run run, uint k, uint kv_row) {
  [[unroll]] for (uint c = 0; c < kLaneChunks; ++c)
    run.values[k * kLaneChunks + c] = load_chunk(params.values, params.value_scales, kv_row,
                                                  min(lane_chunk(c), kRowChunks - 1));
}

void load_run(Work work, uint first, out Run run) {
  run.first = first;
  const uint first_kv_row = next_kv_row;
  const uint last_key = work.item.key_end - 1;
  [[unroll]] for (uint k = 0; k < kRun; ++k)
    load_key(run, k, first_kv_row + clamp(first + k, work.item.key_begin, last_key) % kTokensPerBlock);
  [[unroll]] for (uint k = 0; k < kRun; ++k)
    load_value(run, k, first_kv_row + clamp(first + k, work.item.key_begin, last_key) % kTokensPerBlock);
  next_kv_row = block_rows(work, min(first + kStep, last_key));
}

// The first key of the subgroup's first stream; all its streams continue while that one has keys. Runs
// begin at multiples of kRun, so that a run is in one block.
uint run_base(Work work) {
  return work.item.key_begin / kRun * kRun + gl_SubgroupID * kStreams * kRun;
}

void load_first_run(Work work, out Run run) {
  const uint first = run_base(work) + gl_SubgroupInvocationID / kStreamLanes * kRun;
  next_kv_row = block_rows(work, min(first, work.item.key_end - 1));
  load_run(work, first, run);
}

void load_token(Work work, inout Run run) {
  [[unroll]] for (uint k = 0; k < kRun; ++k) {
    if (min(run.first + k, work.item.key_end - 1) == position) {
      load_key(run, k, token_row);
      load_value(run, k, token_row);
    }
  }
}

#endif
