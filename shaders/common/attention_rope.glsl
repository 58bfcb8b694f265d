// rope_kv.comp's work, done by the attention workgroup that needs it: for a token that is its
// sequence's only one in the step, and all query heads that share a KV head.
//
// Include after attention_constants.glsl, attention_kv.glsl, attention_work.glsl and chain.glsl.
#ifndef HEARTH_ATTENTION_ROPE_GLSL
#define HEARTH_ATTENTION_ROPE_GLSL
#include "common/fences.glsl"

uint partial_quads() { return params.part_rows * (kQStride / 4); }
#include "common/rope_head.glsl"

shared vec4 shared_q[kFuseRope != 0 ? kRows * kRowQuads : 1];

// Quad `quad` of a row's query.
vec4 query_quad(Work work, uint row, uint quad) {
  if (kFuseRope != 0) return shared_q[min(row, kHeadsPerKvHead - 1) * kRowQuads + quad];
  return query_row(work, row).at[quad];
}

// One subgroup per task: the heads of q, then the token's key and its value.
const uint kKeyTask = kHeadsPerKvHead, kTasks = kHeadsPerKvHead + 2;
const uint kTaskSubgroups = gl_WorkGroupSize.x / kSubgroupSize;
const uint kSubgroupTasks = DIVIDE_UP(kTasks, kTaskSubgroups);

// The lane's quads of a head, kLaneQuads per step. Quads from kHeadQuads on do not exist.
const uint kStepQuads = kSubgroupSize * kLaneQuads;
const uint kSteps = DIVIDE_UP(kHeadQuads, kStepQuads);
const uint kQuadsPerLane = kSteps * kLaneQuads;
uint lane_quad(uint i) {
  return i / kLaneQuads * kStepQuads + gl_SubgroupInvocationID * kLaneQuads + i % kLaneQuads;
}

// Cosines and sines for the lane's quads, the same in every head.
struct Rotation {
  vec4 cosines[kQuadsPerLane];
  vec4 sines[kQuadsPerLane];
};

uint token_row;  // the KV row of the token's key and value

// Everything that does not depend on the projection.
void begin_token(Work work, out Rotation rotation) {
  position = work.item.first_position;
  token_row = block_rows(work, position) + position % kTokensPerBlock;
  [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i) {
    rotation.cosines[i] = vec4(1.0);
    rotation.sines[i] = vec4(0.0);
    if (lane_quad(i) < kRopeQuads) quad_angles(lane_quad(i), rotation.cosines[i], rotation.sines[i]);
  }
}

uint64_t task_head(Work work, uint task) {
  const uint64_t row = work.item.first_row;
  if (task < kKeyTask) return params.q + (row * kQStride + row_head(work, task) * kHeadSize) * 4;
  const bool is_key = task == kKeyTask;
  const uint64_t segment = uint64_t(params.part_rows) * (is_key ? kKFloatsBefore : kVFloatsBefore);
  const uint first = (is_key ? kKColumn : kVColumn) + work.kv_head * kHeadSize;
  return params.q + (segment + row * (is_key ? kKStride : kVStride) + first) * 4;
}

// The lane's quads of a head, and the quads they are rotated with unless a quad contains its own pairs.
struct Quads {
  vec4 x[kQuadsPerLane];
  vec4 other[kQuadsPerLane];
};

void load_quads(uint64_t at, out Quads quads) {
  head = FreshF32x4(at);
  [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i) {
    const uint quad = min(lane_quad(i), kHeadQuads - 1);
    quads.x[i] = input_quad(quad);
    quads.other[i] = kAdjacent != 0 ? vec4(0.0) : input_quad(other_quad(min(quad, kRopeQuads - 1)));
  }
}

void norm_quads(inout Quads quads, F32x4 weight) {
  float squares = 0.0;
  [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i)
    squares += lane_quad(i) < kHeadQuads ? dot(quads.x[i], quads.x[i]) : 0.0;
  const float scale = inversesqrt(subgroupAdd(squares) / float(kHeadSize) + kEpsilon);
  [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i) {
    const uint quad = min(lane_quad(i), kHeadQuads - 1);
    quads.x[i] *= scale * weight.at[quad];
    if (kAdjacent == 0) quads.other[i] *= scale * weight.at[other_quad(min(quad, kRopeQuads - 1))];
  }
}

void rope_quads(inout Quads quads, Rotation rotation) {
  [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i) {
    const uint quad = lane_quad(i);
    if (quad < kRopeQuads)
      quads.x[i] =
          rotate_quad(quad, quads.x[i], quads.other[i], rotation.cosines[i], rotation.sines[i]);
  }
}

void stage_query(Quads quads, uint task) {
  [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i)
    if (lane_quad(i) < kHeadQuads) shared_q[task * kRowQuads + lane_quad(i)] = quads.x[i];
}

void write_token(Quads quads, bool is_key) {
  [[unroll]] for (uint step = 0; step < kSteps; ++step) {
    vec4 x[kLaneQuads];
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) x[i] = quads.x[step * kLaneQuads + i];
    write_cache(is_key ? params.keys : params.values,
                is_key ? params.key_scales : params.value_scales, token_row,
                lane_quad(step * kLaneQuads), x);
  }
}

// Writes the item's queries to shared memory, and its token's key and value to the cache.
void rope_token(Work work, Rotation rotation) {
  Quads heads[kSubgroupTasks];  // all in flight before the first is used
  [[unroll]] for (uint t = 0; t < kSubgroupTasks; ++t)
    load_quads(task_head(work, min(gl_SubgroupID + t * kTaskSubgroups, kTasks - 1)), heads[t]);
  [[unroll]] for (uint t = 0; t < kSubgroupTasks; ++t) {
    const uint task = gl_SubgroupID + t * kTaskSubgroups;
    const bool is_key = task == kKeyTask;
    if (task <= kKeyTask) {
      if (kHeadNorms != 0) norm_quads(heads[t], F32x4(is_key ? params.k_norm : params.q_norm));
      rope_quads(heads[t], rotation);
    }
    if (task < kKeyTask)
      stage_query(heads[t], task);
    // In a variable, this condition made NVIDIA's compiler (580) lose writes for heads of 16 in Q8_0.
    else if (task < kTasks && work.item.key_end > position && !chain_failed_before())
      write_token(heads[t], is_key);
  }
  sync_workgroup();
}

#endif
