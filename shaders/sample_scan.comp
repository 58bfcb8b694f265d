// The first of the two sampling kernels, and the only one if all rows are greedy. Reads all logits once.
//
//   logit[r, v] += bias                           for tokens in the row's bias list
//   logit[r, v]  = logit > 0 ? logit / repetition : logit * repetition, then
//   logit[r, v] -= frequency * count + (count > 0 ? presence : 0)
//                                                 for tokens in the row's history, or on its path
//   logit[r, v] -= penalty                        for tokens in the row's DRY list
//   logit[r, v]  = -infinity                      for tokens that are not in the row's mask
//   chunks[r, c]   = largest logit and its lowest id, smallest logit, sum of exp(logit - largest)
//   segments[r, s] = key of the largest logit, and tallies[r] = 0, for sample_pick
//   sums[r, c]     = with kStages, for rows with stages: SamplingSums, behind the chunks
//   results[r]     = with kPickGreedy: the token with the largest logit and the proposal that it accepts, by
//                    the row's last workgroup; for rows with kSamplingGiven, their given token
//
// workgroups = [chunks, rows, 1]. Every kSegmentLanes lanes process kLaneSegments segments one after
// the other; a workgroup's chunk is at most 8191 logits, so that the sums fit 32 bits. Any vocab; if it
// is a multiple of 4, the logits' address must be a multiple of 16. Tokens outside the vocabulary are
// ignored. Without kExtras no row has a path, DRY penalties or a mask, and nothing is compiled for them.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/kernel.glsl"
#include "params/sample_scan.h"
#include "common/sampling_key.glsl"
#include "common/sampling_reduce.glsl"
#include "common/sampling_views.glsl"
#include "common/sampling_summary.glsl"
#include "common/stages_sums.glsl"
#include "common/last_workgroup.glsl"
#include "common/chain_state.glsl"

const uint kSegments = gl_WorkGroupSize.x / kSegmentLanes;  // in flight at once
const uint kLaneQuads = kSegmentQuads / kSegmentLanes;
const bool kInRegisters = kLaneSegments == 1;  // keys stay in registers; otherwise logits are read twice

#include "common/sampling_adjust.glsl"
#include "common/sampling_accept.glsl"

struct Best {
  uint key, id;
  uint lowest_key;
};

// Adds four tokens to `best` and returns their largest key. Ids increase from quad to quad, so the first
// of equal logits has the lowest id.
uint reduce_quad(uvec4 keys, uint quad, inout Best best) {
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    if (keys[c] != kMinusInfinityKey) best.lowest_key = min(best.lowest_key, keys[c]);
    if (keys[c] > best.key) {
      best.key = keys[c];
      best.id = quad * 4 + c;
    }
  }
  return max(max(keys.x, keys.y), max(keys.z, keys.w));
}

uvec2 weigh_quad(uvec4 keys, float largest) {
  uvec2 sum = uvec2(0);
  [[unroll]] for (uint c = 0; c < 4; ++c) sum += weight_limbs(largest - key_logit(keys[c]));
  return sum;
}

struct LaneSums {
  uint count;
  uint64_t steps, squares, moment;
};

void add_quad(uvec4 keys, float largest, inout LaneSums sums) {
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    if (keys[c] <= kMinusInfinityKey) continue;
    const float distance = largest - key_logit(keys[c]);
    const uint steps = spread_steps(distance);
    ++sums.count;
    sums.steps += steps;
    sums.squares += uint64_t(steps) * steps;
    sums.moment += weight_moment(weight_of(distance), distance);
  }
}

shared uint lane_keys[kSegmentLanes > 1 ? gl_WorkGroupSize.x : 1];  // each lane's largest key

uvec4 segment_keys(uint64_t row_logits, uint segment, uint j) {
  return quad_keys(load_quad(row_logits, segment_quad(segment, j, kSegments), params.vocab));
}

// Picks the row's first token, once all its chunks are known. To be called by one subgroup.
void pick_greedy(SamplingRow row, uint row_index, uint64_t chunks) {
  const RowSummary summary = summarize(chunks, gl_NumWorkGroups.x);
  if (!subgroupElect()) return;
  SamplingResult result = no_choice(summary);
  if (has_choice(summary))
    result = SamplingResult(summary.best_id, 0.0 - summary.log_sum, 1,
                            accepted_proposal(row, summary.best_id));
  if (has_choice(summary) && (row.flags & kSamplingGiven) != 0) {
    const float logit = F32(params.logits + uint64_t(row_index) * params.vocab * 4).at[row.given];
    result = SamplingResult(row.given, (logit - key_logit(summary.best_key)) - summary.log_sum, 1, 0);
  }
  if (row.id_index != kNoSlot) U32(params.ids).at[row.id_index] = result.id;
  SamplingResults(params.results).at[row_index] = result;
}

void report_sums(LaneSums sums, uint row_index, uint chunk) {
  sums.count = workgroup_sum(sums.count);
  sums.steps = workgroup_sum64(sums.steps);
  sums.squares = workgroup_sum64(sums.squares);
  sums.moment = workgroup_sum64(sums.moment);
  if (gl_LocalInvocationID.x != 0) return;
  const uint64_t to =
      sums_of_row(params.chunks, gl_NumWorkGroups.y, row_index, gl_NumWorkGroups.x);
  SamplingSumsOfChunks(to).at[chunk] =
      SamplingSums(sums.count, uint(sums.steps), uint(sums.steps >> 32), uint(sums.squares),
                   uint(sums.squares >> 32), uint(sums.moment), uint(sums.moment >> 32));
}

void scan(SamplingRow row) {
  const uint lane = gl_LocalInvocationID.x;
  const uint lanes = gl_WorkGroupSize.x;
  const uint chunk = gl_WorkGroupID.x;
  const uint row_index = gl_WorkGroupID.y;
  if ((row.flags & kSamplingActive) == 0) return;
  const uint64_t row_logits = params.logits + uint64_t(row_index) * params.vocab * 4;
  const uint chunk_size = kSegments * kLaneSegments * kSegmentQuads * 4;
  if (changes_logits(row))
    adjust(row, row_logits, chunk * chunk_size, min((chunk + 1) * chunk_size, params.vocab));

  U32 tally = U32(params.tallies + uint64_t(row_index) * params.tally_words * 4);
  for (uint i = chunk * lanes + lane; i < params.tally_words; i += gl_NumWorkGroups.x * lanes)
    tally.at[i] = 0;

  U32 segments =
      U32(params.segments + uint64_t(row_index) * gl_NumWorkGroups.x * kSegments * kLaneSegments * 4);
  const uint first = chunk * kLaneSegments * kSegments + lane % kSegments;
  const uint first_quad = lane / kSegments * kLaneQuads;  // of the segment
  uvec4 keys[kLaneQuads];                                 // with kInRegisters
  Best best = Best(0, 0, 0xffffffffu);
  for (uint s = 0; s < kLaneSegments; ++s) {
    const uint segment = first + s * kSegments;
    uint segment_key = 0;
    if (kInRegisters) {
      // All loads are in flight before the first is used.
      [[unroll]] for (uint j = 0; j < kLaneQuads; ++j)
        keys[j] = segment_keys(row_logits, segment, first_quad + j);
      [[unroll]] for (uint j = 0; j < kLaneQuads; ++j)
        segment_key = max(
            segment_key,
            reduce_quad(keys[j], segment_quad(segment, first_quad + j, kSegments), best));
    } else {
      [[dont_unroll]] for (uint j = 0; j < kSegmentQuads; ++j)
        segment_key = max(segment_key, reduce_quad(segment_keys(row_logits, segment, j),
                                                    segment_quad(segment, j, kSegments), best));
    }
    if (kSegmentLanes == 1 && kPickGreedy == 0) segments.at[segment] = segment_key;
  }
  if (kSegmentLanes > 1 && kPickGreedy == 0) {
    lane_keys[lane] = best.key;
    barrier();
    if (lane < kSegments) {
      uint segment_key = 0;
      [[unroll]] for (uint i = 0; i < kSegmentLanes; ++i)
        segment_key = max(segment_key, lane_keys[lane + i * kSegments]);
      segments.at[first] = segment_key;
    }
  }
  const uint chunk_key = workgroup_max(best.key);
  const uvec2 least =
      workgroup_min(uvec2(best.key == chunk_key ? best.id : 0xffffffffu, best.lowest_key));

  uvec2 sum = uvec2(0);
  LaneSums sums = LaneSums(0, 0ul, 0ul, 0ul);
  const bool measures = kStages != 0 && (row.flags & kSamplingStages) != 0;
  if (chunk_key > kMinusInfinityKey) {
    const float largest = key_logit(chunk_key);
    if (kInRegisters) {
      [[unroll]] for (uint j = 0; j < kLaneQuads; ++j) {
        sum += weigh_quad(keys[j], largest);
        if (measures) add_quad(keys[j], largest, sums);
      }
    } else {
      [[dont_unroll]] for (uint i = 0; i < kLaneSegments * kSegmentQuads; ++i) {
        const uvec4 quad = segment_keys(row_logits, first + i / kSegmentQuads * kSegments,
                                        i % kSegmentQuads);
        sum += weigh_quad(quad, largest);
        if (measures) add_quad(quad, largest, sums);
      }
    }
  }
  if (measures) report_sums(sums, row_index, chunk);
  sum = workgroup_sum(sum);
  const uint64_t chunks = params.chunks + uint64_t(row_index) * gl_NumWorkGroups.x * 20;
  if (lane == 0)
    SamplingChunks(chunks).at[chunk] = SamplingChunk(chunk_key, least.x, least.y, sum.x, sum.y);
  if (kPickGreedy != 0 && is_last_workgroup(params.counts, row_index, gl_NumWorkGroups.x) &&
      gl_SubgroupID == 0)
    pick_greedy(row, row_index, chunks);
}

void main() {
  const SamplingRow row = SamplingRows(params.rows).at[gl_WorkGroupID.y];
  if (chain_wait_intact()) scan(row);
  chain_done();
}
